//! The native half of the Python package: what the library crate does, as Python calls it. Nothing is decided here.
//!
//! ```text
//!  python/imbrex/*.py ─► _imbrex ─► options: keywords become the words of the command line
//!                           │       workload: words, paths, Arrow tables, NumPy arrays become a Workload
//!                           ├─► work: runs it beside the interpreter, which shows progress and hears Ctrl-C
//!                           └─► tables: results go out as Arrow streams, a group of rows at a time
//! ```
//!
//! Invariants:
//! 1. No panic crosses the border: what is our own bug is an `ImbrexError` that says so. What can panic runs inside
//!    [`errors::guarded`] or [`errors::caught`], in the thread of [`work`], or in a stream of [`tables::stream`].
//! 2. While work lasts, the interpreter is free: other threads run.
//! 3. Tables come in and go out without a copy of their columns of numbers.

mod border;
mod calibrate;
mod columns;
mod drive;
mod errors;
mod options;
mod registries;
mod simulate;
mod sweep;
mod tables;
mod trace;
mod work;
mod workload;

use pyo3::prelude::*;

/// What `import imbrex._imbrex` finds.
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
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(options::option_names, module)?)?;
    module.add_function(wrap_pyfunction!(registries::listed, module)?)?;
    module.add_function(wrap_pyfunction!(registries::one, module)?)?;
    Ok(())
}
