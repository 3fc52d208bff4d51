"""What a person reads: tables on the terminal and in Markdown, figures."""
