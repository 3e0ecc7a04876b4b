# No C types: compiled as it is, since every append asks it something.
