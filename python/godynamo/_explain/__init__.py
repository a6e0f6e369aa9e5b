"""What explain() gives, as data, text, HTML and pictures, and what it counts."""
