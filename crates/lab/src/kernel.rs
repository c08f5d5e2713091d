//! The kernel of the lab: Debian's source of Linux, built for user mode, in the user's cache folder.
//!
//! Linux is under the GNU General Public License, version 2. Its source is fetched as the user asks for it, its licence
//! lies beside the built kernel, and no part of it is in this program.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::LabError;

/// Debian's package of the source.
const PACKAGE: &str = "linux-source-6.12";
/// Options of the kernel, beyond the defaults.
const CONFIGURATION: &str = include_str!("kernel.config");
/// Source of the library that is loaded into the kernel.
const PRELOAD: &str = include_str!("preload.c");
/// Text of the licence in the source.
const LICENCE: &str = "LICENSES/preferred/GPL-2.0";
/// Names of files in the folder of a built kernel.
const PROGRAM_FILE: &str = "linux";
const PRELOAD_FILE: &str = "preload.so";
/// Options and library that were asked for when the kernel was built.
const ASKED_FILE: &str = "asked";
/// Programs that a build needs, with their Debian packages.
const TOOLS: [(&str, &str); 8] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz", "xz-utils"),
    ("tar", "tar"),
];

/// A built kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    program: PathBuf,
    preload: PathBuf,
}

/// The source from which a kernel is built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// Debian's package, fetched with `apt-get download`.
    Debian,
    /// A file: the package (`.deb`) or the archive of the source (`.tar.xz`).
    File(PathBuf),
}

/// A step of a build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The package is fetched.
    Fetch,
    /// The source is unpacked.
    Unpack,
    /// The options are chosen.
    Configure,
    /// This many files were compiled so far.
    Compile(u64),
}

impl Kernel {
    /// Returns the kernel in the cache folder.
    ///
    /// # Errors
    ///
    /// [`LabError::NoKernel`] if none has been built, [`LabError::OldKernel`] if another version of this crate built it with
    /// other options.
    pub fn cached() -> Result<Kernel, LabError> {
        let folder = cache()?;
        let kernel = Kernel::in_folder(&folder);
        if !kernel.program.is_file() || !kernel.preload.is_file() {
            return Err(LabError::NoKernel(folder));
        }
        match std::fs::read_to_string(folder.join(ASKED_FILE)) {
            Ok(asked) if asked == asked_for() => Ok(kernel),
            _ => Err(LabError::OldKernel(folder)),
        }
    }

    /// Returns the kernel in the file `program`, which the caller has built with the options of
    /// [`Kernel::configuration`]. The library that is loaded into it lies in the cache folder, and is built if it is
    /// missing.
    ///
    /// # Errors
    ///
    /// The file is missing, or the library cannot be built.
    pub fn of_file(program: &Path) -> Result<Kernel, LabError> {
        let failed = |cause| LabError::System { what: program.display().to_string(), cause };
        let program = program.canonicalize().map_err(failed)?;
        let folder = cache()?;
        let preload = folder.join(PRELOAD_FILE);
        // Another version of this crate may have built another.
        if !preload.is_file() || std::fs::read_to_string(folder.join("preload.c")).is_ok_and(|text| text != PRELOAD) {
            make_folder(&folder)?;
            build_preload(&folder)?;
        }
        Ok(Kernel { program, preload })
    }

    fn in_folder(folder: &Path) -> Kernel {
        Kernel { program: folder.join(PROGRAM_FILE), preload: folder.join(PRELOAD_FILE) }
    }

    /// Returns the file of the kernel.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the library that is loaded into the kernel.
    pub(crate) fn preload(&self) -> &Path {
        &self.preload
    }

    /// Returns the options of the kernel, beyond those of `make ARCH=um defconfig`, in the format of a `.config`.
    pub fn configuration() -> &'static str {
        CONFIGURATION
    }

    /// Builds the kernel from `source` into the cache folder, with `jobs` compilers at once. `report` receives each
    /// step, and returns whether to stop.
    ///
    /// # Errors
    ///
    /// A tool is missing, the source cannot be had, a step fails, or the caller stopped it.
    pub fn build(source: &Source, jobs: usize, report: &mut dyn FnMut(Step) -> bool) -> Result<Kernel, LabError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(LabError::Machine);
        }
        check_tools(source)?;
        let folder = cache()?;
        make_folder(&folder)?;
        let failed = |cause| LabError::System { what: format!("making a folder in {}", folder.display()), cause };
        // A build that fails, or runs beside another, leaves nothing behind.
        let temporary = tempfile::Builder::new().prefix("build").tempdir_in(&folder).map_err(failed)?;
        let work = temporary.path();
        let archive = archive(source, work, report)?;
        stop_if(report(Step::Unpack))?;
        let mut unpack = Command::new("tar");
        unpack.arg("-xf").arg(&archive).args(["--strip-components=1", "-C"]).arg(work);
        finish(&mut unpack, "unpacking the source")?;
        stop_if(report(Step::Configure))?;
        configure(work)?;
        compile(work, jobs, report)?;
        build_preload(&folder)?;
        for (from, to) in [(LICENCE, "COPYING"), (".config", "config"), (PROGRAM_FILE, PROGRAM_FILE)] {
            let failed = |cause| LabError::System { what: format!("storing {to} in {}", folder.display()), cause };
            std::fs::copy(work.join(from), folder.join(format!("{to}.new"))).map_err(failed)?;
            std::fs::rename(folder.join(format!("{to}.new")), folder.join(to)).map_err(failed)?;
        }
        // It comes last: only with it, the folder has a kernel of these options.
        let asked = folder.join(ASKED_FILE);
        let failed = |cause| LabError::System { what: format!("writing {}", asked.display()), cause };
        std::fs::write(&asked, asked_for()).map_err(failed)?;
        Ok(Kernel::in_folder(&folder))
    }
}

/// Returns the options and the source of the library that this version asks for.
fn asked_for() -> String {
    format!("{CONFIGURATION}{PRELOAD}")
}

/// Returns the folder of the built kernel: the folder of the lab in the user's cache folder.
///
/// # Errors
///
/// The environment names no home folder.
pub fn cache() -> Result<PathBuf, LabError> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Ok(base.ok_or(LabError::NoHome)?.join("imbrex/lab"))
}

/// Returns an error that names all missing tools and their packages.
fn check_tools(source: &Source) -> Result<(), LabError> {
    let unpackers: &[(&str, &str)] = match source {
        Source::Debian => &[("apt-get", "apt"), ("dpkg-deb", "dpkg")],
        Source::File(path) if path.extension().is_some_and(|ending| ending == "deb") => &[("dpkg-deb", "dpkg")],
        Source::File(_) => &[],
    };
    let missing: Vec<_> = TOOLS.iter().chain(unpackers).filter(|(program, _)| !is_installed(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = |which: fn(&&(&str, &str)) -> String| missing.iter().map(which).collect::<Vec<_>>();
    Err(LabError::Tools {
        programs: list(|(program, _)| (*program).into()).join(", "),
        packages: list(|(_, package)| (*package).into()).join(" "),
    })
}

/// Returns whether a program is in one of the folders of `PATH`.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Makers of file systems lie in folders that users' paths may lack.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.into_iter().any(|folder: PathBuf| folder.join(program).is_file())
}

/// Returns the archive of the source.
fn archive(source: &Source, work: &Path, report: &mut dyn FnMut(Step) -> bool) -> Result<PathBuf, LabError> {
    let package = match source {
        Source::File(path) if path.extension().is_some_and(|ending| ending == "deb") => path.clone(),
        Source::File(path) => return Ok(path.clone()),
        Source::Debian => {
            stop_if(report(Step::Fetch))?;
            let mut fetch = Command::new("apt-get");
            fetch.args(["download", PACKAGE]).current_dir(work);
            finish(&mut fetch, "fetching the source (`apt-get update` may be needed first)")?;
            with_ending(work, "deb")?
        }
    };
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("-x").arg(&package).arg(work.join("package"));
    finish(&mut unpack, "unpacking the package")?;
    with_ending(&work.join("package/usr/src"), "xz")
}

/// Returns the file in `folder` whose name ends so.
fn with_ending(folder: &Path, ending: &str) -> Result<PathBuf, LabError> {
    let failed = |cause| LabError::System { what: format!("reading {}", folder.display()), cause };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let found = paths.find(|path| path.extension().is_some_and(|found| found == ending));
    found.ok_or_else(|| LabError::Source(format!("{} has no file .{ending}", folder.display())))
}

fn configure(work: &Path) -> Result<(), LabError> {
    let failed = |cause| LabError::System { what: "writing the kernel's options".into(), cause };
    finish(make(work).arg("defconfig"), "choosing the kernel's default options")?;
    let path = work.join(".config");
    let mut options = std::fs::read_to_string(&path).map_err(failed)?;
    options.push_str(CONFIGURATION);
    std::fs::write(&path, options).map_err(failed)?;
    finish(make(work).arg("olddefconfig"), "choosing the kernel's options")?;
    let chosen = std::fs::read_to_string(&path).map_err(failed)?;
    // An option that depends on another disappears without a word.
    let is_kept = |line: &&str| match line.strip_prefix("# CONFIG_").and_then(|rest| rest.strip_suffix(" is not set")) {
        Some(name) => !chosen.lines().any(|other| other.starts_with(&format!("CONFIG_{name}="))),
        None => chosen.lines().any(|other| other == *line),
    };
    let asked = CONFIGURATION.lines().filter(|line| line.contains("CONFIG_") && !line.is_empty());
    let lost: Vec<&str> = asked.filter(|line| !is_kept(line)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(LabError::Source(format!("this source has no such options: {}", lost.join(", "))))
}

fn make(work: &Path) -> Command {
    let mut command = Command::new("make");
    command.current_dir(work).arg("ARCH=um").env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    // The version that `uname` prints is the same in each build.
    command
        .env("KBUILD_BUILD_TIMESTAMP", "2025-01-01")
        .env("KBUILD_BUILD_USER", "imbrex")
        .env("KBUILD_BUILD_HOST", "lab");
    command
}

fn compile(work: &Path, jobs: usize, report: &mut dyn FnMut(Step) -> bool) -> Result<(), LabError> {
    let what = "compiling the kernel";
    let failed = |cause| LabError::System { what: what.into(), cause };
    stop_if(report(Step::Compile(0)))?;
    let mut command = make(work);
    command.arg(format!("-j{jobs}")).arg("linux").stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut running = crate::guest::Running::of(&mut command).map_err(failed)?;
    let mut errors = running.child.stderr.take().expect("it is a pipe");
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        errors.read_to_end(&mut text).map(|_| text)
    });
    let output = BufReader::new(running.child.stdout.take().expect("it is a pipe"));
    let mut compiled = 0;
    for line in output.lines() {
        if line.map_err(failed)?.trim_start().starts_with("CC ") {
            compiled += 1;
            stop_if(report(Step::Compile(compiled)))?;
        }
    }
    let status = running.child.wait().map_err(failed)?;
    let text = errors.join().expect("the thread does not panic").map_err(failed)?;
    if status.success() { Ok(()) } else { Err(LabError::step(what, &text)) }
}

fn build_preload(folder: &Path) -> Result<(), LabError> {
    let source = folder.join("preload.c");
    let failed = |cause| LabError::System { what: format!("writing {}", source.display()), cause };
    std::fs::write(&source, PRELOAD).map_err(failed)?;
    let mut command = Command::new("gcc");
    command.args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(folder.join(PRELOAD_FILE)).arg(&source);
    finish(&mut command, "compiling the library for the kernel")
}

/// Runs a step of the build to its end.
fn finish(command: &mut Command, what: &str) -> Result<(), LabError> {
    let failed = |cause| LabError::System { what: what.into(), cause };
    let output = command.stdin(Stdio::null()).output().map_err(failed)?;
    if output.status.success() { Ok(()) } else { Err(LabError::step(what, &output.stderr)) }
}

fn make_folder(folder: &Path) -> Result<(), LabError> {
    let failed = |cause| LabError::System { what: format!("making the folder {}", folder.display()), cause };
    std::fs::create_dir_all(folder).map_err(failed)
}

fn stop_if(is_stopped: bool) -> Result<(), LabError> {
    if is_stopped { Err(LabError::Stopped) } else { Ok(()) }
}
