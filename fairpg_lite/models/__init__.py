"""Models on disk, and the preparation of features that belongs to each."""

from fairpg_lite.models.model_file import SavedModel, load_model, save_model
from fairpg_lite.models.preparation import Preparation

__all__ = ["Preparation", "SavedModel", "load_model", "save_model"]
