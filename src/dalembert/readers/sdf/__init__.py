"""SDF 1.4 to 1.12: models with links, joints, frames and nested models."""
