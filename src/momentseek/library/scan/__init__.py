"""Find the videos that hold the clips most like a query, exactly or by a plan whose recall is measured."""
