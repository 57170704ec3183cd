module twindex

go 1.19
