"""Text for people at a terminal.

progress      progress bars, or plain lines without a terminal
visible_text  foreign text with unprintable characters made visible
"""
