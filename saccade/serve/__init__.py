"""The server: runs behind HTTP, for programs and for the page."""
