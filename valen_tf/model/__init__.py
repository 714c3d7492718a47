"""What methods are made of: the deep ones' Keras model, the classical ones' estimator."""
