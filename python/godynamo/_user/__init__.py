"""Functions for users: optimize() and compile() with their options, marks on functions, stances, export."""
