//! The checker: carries out plans symbolically on an integrity map and proves that nothing live is lost.
