"""headrace plans, runs and ends one training job together with the storage that feeds it."""
