"""Why a trained model answers a query as it does: word weights, curves and filters, with the truth."""
