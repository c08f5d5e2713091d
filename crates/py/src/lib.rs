//! Native module of the Python package: makes the library crate callable from Python. It contains no logic of its own.
//!
//! ```text
//!  python/imbrex/*.py ─► _imbrex ─► options: keywords become the words of the command line
//!                           │       workload: words, paths, Arrow tables, NumPy arrays become a Workload
//!                           ├─► work: runs it beside the interpreter, which shows progress and hears Ctrl-C
//!                           └─► tables: results go out as Arrow streams, a group of rows at a time
//! ```
//!
//! Invariants:
//! 1. No panic crosses into Python. A bug of this program becomes an `ImbrexError` that says so. Code that can panic
//!    runs inside [`errors::guarded`] or [`errors::caught`], in the thread of [`work`], or in a stream of
//!    [`tables::stream`].
//! 2. During long work the interpreter lock is released, so that other threads run.
//! 3. Numeric columns of Arrow tables come in without a copy, and go out without one unless they have nulls. NumPy
//!    arrays and other buffers are copied.

mod border;
mod calibrate;
mod columns;
mod drive;
mod errors;
mod human;
mod options;
mod registries;
mod simulate;
mod sweep;
mod tables;
mod trace;
mod work;
mod workload;

use pyo3::prelude::*;

/// Defines the module `imbrex._imbrex`.
#[pymodule]
fn _imbrex(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ImbrexError", module.py().get_type::<errors::ImbrexError>())?;
    module.add_class::<drive::Drive>()?;
    module.add_class::<simulate::Simulated>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<sweep::Shipped>()?;
    module.add_class::<tables::Table>()?;
    module.add_class::<trace::Trace>()?;
    module.add_class::<trace::Batches>()?;
    module.add_class::<trace::TraceBatch>()?;
    module.add_class::<workload::Columns>()?;
    module.add_function(wrap_pyfunction!(calibrate::fitted, module)?)?;
    module.add_function(wrap_pyfunction!(calibrate::probed, module)?)?;
    module.add_function(wrap_pyfunction!(calibrate::validated, module)?)?;
    module.add_function(wrap_pyfunction!(human::shown_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(human::shown_duration, module)?)?;
    module.add_function(wrap_pyfunction!(human::shown_gain, module)?)?;
    module.add_function(wrap_pyfunction!(human::shown_ratio, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::explained_table, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(options::option_names, module)?)?;
    module.add_function(wrap_pyfunction!(registries::listed, module)?)?;
    module.add_function(wrap_pyfunction!(registries::one, module)?)?;
    Ok(())
}
