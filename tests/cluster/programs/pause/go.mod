module voda.dev/tests/cluster/programs/pause

go 1.26
