"""From captions to graded pairs: candidates, annotators' labels, consensus and agreement (TVR-Ranking §3)."""
