// Not in the list.
