"""The rules of other simulators, so that our numbers can be laid beside theirs."""
