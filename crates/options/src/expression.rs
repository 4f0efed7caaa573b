//! Arithmetic in values: `size=(4*1024)k`.
