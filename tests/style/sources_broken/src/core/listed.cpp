// Built.
