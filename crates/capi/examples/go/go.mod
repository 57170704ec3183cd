module twindex-example

go 1.19
