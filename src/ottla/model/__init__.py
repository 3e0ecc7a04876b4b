"""Names, numbers and rules that every room shares. Knows no wire, no file, no thread."""
