//! Tests of the built program from outside. Environment variables of the long tests are listed at the heads of `soak`
//! and `powercut`.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

#[cfg(target_os = "linux")]
mod completions;
#[cfg(target_os = "linux")]
mod consent;
mod damage;
mod drive;
mod explain;
mod faults;
#[cfg(target_os = "linux")]
mod folders;
#[cfg(target_os = "linux")]
mod fs;
#[cfg(unix)]
mod install;
mod interlaced;
mod lab;
mod lab_probe;
#[cfg(target_os = "linux")]
mod names;
mod nbd;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod pages;
#[cfg(target_os = "linux")]
mod pipes;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod powercut;
mod probe;
mod reproduce;
#[cfg(target_os = "linux")]
mod schemas;
mod seeds;
#[cfg(target_os = "linux")]
mod service;
mod settings;
mod simulate;
mod soak;
mod sweep;
mod table;
mod traces;
mod validate;
mod window;
mod words;
