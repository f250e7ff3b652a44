//! Packing of buffers into one slab.
