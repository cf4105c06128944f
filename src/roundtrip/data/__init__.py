"""The rows of the user and the tensors of the model: columns, scaling, images, context."""
