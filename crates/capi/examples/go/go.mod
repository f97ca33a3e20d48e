module classyard-example

go 1.21
