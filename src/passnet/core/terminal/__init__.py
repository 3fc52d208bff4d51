"""Text for people at a terminal.

console       the terminal, or a pipe; NO_COLOR
progress      progress bars, or plain lines without a terminal
counts        numbers of things in words
visible_text  foreign text with unprintable characters made visible
"""
