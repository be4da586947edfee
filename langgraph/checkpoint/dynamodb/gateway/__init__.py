"""The service for agents without AWS access: it owns the table, and runs the saver's operations for them."""
