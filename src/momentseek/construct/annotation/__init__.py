"""From captions to graded pairs: candidates, annotators' labels, their consensus and agreement (TVR-Ranking §3)."""
