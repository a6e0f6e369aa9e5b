"""The user's calls: optimize() and compile() with their options, marks on functions, stances, export."""
