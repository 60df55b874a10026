"""The admin pages: what an operator may look at. Nothing here changes anything."""
