//! Tests of profiles and measured geometries through the public interface.

mod measured;
mod profile_page;
