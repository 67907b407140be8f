"""Results: the tables of a run and the folder that holds them."""
