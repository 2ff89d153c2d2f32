"""Force laws and contacts as data: what rubs, along which direction, under which law and load."""
