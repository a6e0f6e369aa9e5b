"""What the user calls: optimize() and compile() with their options, what users say about functions, stances, export."""
