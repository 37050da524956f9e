"""What people see of programs and compiled models: figures, tables, and notebooks."""
