"""Ways to solve the block matrix of a mechanism; `route_table.py` lists them."""
