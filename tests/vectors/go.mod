module sojourn/vectors

go 1.19
