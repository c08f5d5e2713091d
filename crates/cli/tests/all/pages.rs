//! Goal: the commands of the README and of the pages in `docs` work, and their outputs are those on the pages. Method:
//! each page is a script. Its blocks of commands run in order, in a folder of the page's own, with the built program.
//!
//! In a block `console`, a line that begins with `$ ` is a command, and the lines after it are its output, standard error
//! included; a command without such lines may print anything. An output that begins with `imbrex: ` is that of a command
//! that fails; other commands must succeed. In an output, `…` stands for any text within a line, and as a whole line for
//! any lines: times of the wall clock, identifiers, omissions. In other blocks each line is a command, which must succeed.
//!
//! Devices and folders of the pages are replaced by files and folders of the test. [`EXEMPT`] lists blocks that cannot
//! run, with the reasons.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use imbrex_testkit::loop_device::LoopDevice;

/// Preparations for a page.
struct SetUp {
    /// Path of the page in the repository.
    page: &'static str,
    /// Programs that the commands call, beside the shell's usual ones, and devices. Without them, the page is skipped.
    needs: &'static [&'static str],
    /// Commands that run first. `PAGE` in a command is the path of the page.
    before: &'static [&'static str],
    /// Texts of the page and their replacements, in order. `FOLDER` in a replacement is the folder of the page.
    replaced: &'static [(&'static str, &'static str)],
}

/// Device of FUSE, for pages that mount.
const FUSE: &str = "/dev/fuse";

/// Kernel of the lab.
const LAB: &str = "imbrex lab build";

const SET_UPS: &[SetUp] = &[
    SetUp { page: "README.md", needs: &[], before: &[], replaced: &[] },
    SetUp {
        page: "docs/ci.md",
        needs: &[FUSE, "nbdfuse", "fusermount3"],
        before: &[],
        replaced: &[("/tmp/", "FOLDER/")],
    },
    SetUp {
        page: "docs/drive.md",
        needs: &[],
        // The schedule of faults is the block before the command that takes it.
        before: &[r"sed -n '/^\[\[fault\]\]/,/^```/p' PAGE | sed '/^```/d' >faults.toml"],
        // The commands after the start of a server wait until it serves.
        replaced: &[
            ("/tmp/", "FOLDER/"),
            ("disk.sock &", "disk.sock & until [ -S FOLDER/disk.sock ]; do sleep 0.1; done"),
        ],
    },
    SetUp { page: "docs/explain.md", needs: &[], before: &[], replaced: &[] },
    SetUp {
        page: "docs/fs/bench.md",
        needs: &[],
        before: &["imbrex drive create smr.img --drive caveat-1g --quiet", "imbrex fs mkfs smr.img", "mkdir some"],
        // As many operations as the test has patience for.
        replaced: &[
            ("postmark smr.img", "postmark smr.img --files 500 --operations 500"),
            ("postmark /mnt/some/directory", "postmark some --files 500 --operations 500"),
            ("mail.img --seeds 5", "mail.img --seeds 5 --operations 200"),
            ("/mnt/some/directory --fill 10GiB", "some --fill 10MiB"),
        ],
    },
    SetUp {
        page: "docs/fs/guide.md",
        needs: &[FUSE, "lsblk"],
        before: &[
            "for name in X b c d e f g h i; do imbrex drive create sd$name --drive strict-append --quiet; done",
            "truncate -s 256M nvme0n1p4 nvme1n1p4 nvme2n1p4",
            "mkdir array",
        ],
        // Images take the place of devices. No drive of the array is missing, so both replacements name theirs. The
        // array gets a file, and is unmounted and loses its metadata before it is salvaged.
        replaced: &[
            ("sudo ", ""),
            (" -o allow_other", ""),
            ("/dev/sdh /mnt/array", "/dev/sdh array && echo hello >array/file"),
            ("imbrex fs replace /mnt/array --with /dev/sdf", "imbrex fs replace array --drive 1 --with sdf"),
            ("imbrex fs replace /mnt/array --drive 2 --with /dev/sdf", "imbrex fs replace array --drive 2 --with sdi"),
            ("imbrex fs clean /mnt/array", "imbrex fs clean array && imbrex fs umount array"),
            (
                "imbrex fs salvage /dev/sdb /dev/sdc /dev/sdd /dev/sde --meta /dev/nvme1n1p1",
                "rm nvme*; truncate -s 256M meta; imbrex fs salvage sdb sdf sdi sde sdg --meta meta",
            ),
            (
                "imbrex fs salvage /dev/sdb /dev/sdc /dev/sdd /dev/sde --to /mnt/rescued",
                "rm meta; imbrex fs salvage sdb sdf sdi sde sdg --to rescued && grep -rq hello rescued",
            ),
            ("/dev/", ""),
            ("/mnt/", "FOLDER/"),
        ],
    },
    SetUp {
        page: "docs/fs/operations.md",
        needs: &[FUSE],
        before: &[
            "for name in b c d; do imbrex drive create sd$name --drive strict-append --quiet; done",
            "truncate -s 256M nvme nvmeX && mkdir mnt",
            "imbrex fs mkfs sdb sdc sdd --store log --parity 1 --meta nvme",
            "imbrex fs mount nvme sdb sdc sdd mnt && echo hello >mnt/file && imbrex fs umount mnt",
            "rm nvme",
        ],
        replaced: &[
            ("imbrex fs scrub --repair DIR", "imbrex fs scrub --repair mnt && imbrex fs umount mnt"),
            ("/dev/", ""),
            ("/mnt", "FOLDER/mnt"),
        ],
    },
    SetUp {
        page: "docs/is-my-drive-shingled.md",
        needs: &[],
        before: &[],
        // A simulated drive takes the place of a real one.
        replaced: &[
            ("sudo ", ""),
            ("--file /mnt/data", "sim:seagate-st8000as0022 --test type"),
            ("/dev/sdX", "sim:seagate-st8000as0022"),
        ],
    },
    SetUp {
        page: "docs/lab.md",
        needs: &[LAB, "mkfs.ext4", "mdadm"],
        before: &["echo true > my-load.sh"],
        replaced: &[("sudo apt-get install", "true"), ("imbrex lab build", "true")],
    },
    SetUp { page: "docs/probe.md", needs: &[], before: &[], replaced: &[] },
    SetUp {
        page: "docs/serve.md",
        needs: &[FUSE, "nbdinfo", "nbdcopy", "nbdfuse", "fio", "socat", "losetup", "mkfs.ext4", "fusermount3"],
        before: &["truncate -s 1M filesystem.raw", "mkdir backup mnt"],
        // A kernel's NBD client and a virtual machine are left out. The job for CI begins when the first server has ended.
        replaced: &[
            (
                "disk.sock             # Ctrl-C ends it",
                "disk.sock --control /run/disk.control & until [ -S /tmp/disk.sock ]; do sleep 0.1; done",
            ),
            ("qemu-system-x86_64 -drive 'file=nbd+unix:///?socket=/tmp/disk.sock,format=raw' …", "true"),
            ("sudo nbd-client -unix /tmp/disk.sock /dev/nbd0", "true"),
            ("--rw=randwrite --bs=4k", "--rw=randwrite --bs=4k --size=64k"),
            (
                "--vhost-user /tmp/guest.sock",
                "--vhost-user /tmp/guest.sock & until [ -S /tmp/guest.sock ]; do sleep 0.1; done; kill -INT $!; wait $!",
            ),
            ("qemu-system-x86_64 -accel", "true"),
            ("imbrex serve --drive", "kill -INT %1; wait %1; imbrex serve --drive"),
            // mkfs would wait for minutes.
            ("--time 10x", "--time none"),
            ("…your tests on /mnt…", "touch mnt/file"),
            ("…write, sync, note what was synced…", "sleep 1"),
            ("…recover, and look for what was synced…", "true"),
            ("sudo ", ""),
            ("/mnt", "FOLDER/mnt"),
            ("/tmp/", "FOLDER/"),
            ("/run/", "FOLDER/"),
            ("/disks/", "FOLDER/"),
            ("/backup/", "FOLDER/backup/"),
        ],
    },
    SetUp {
        page: "docs/traces.md",
        needs: &[],
        before: &[
            r"printf '0,W,8,4096\n1000,R,16,4096\n' >requests.csv",
            r"printf 'a\t0\tsda\t1\t4096\t8\nb\t5\tsda\t0\t8192\t8\n' >requests.tsv",
            r"printf '4096,512\n8192,512\n' >places.csv",
        ],
        replaced: &[],
    },
    SetUp {
        page: "docs/tutorial.md",
        needs: &[],
        before: &["imbrex trace convert cloudphysics-w106 my-trace.csv --limit 2000", "gzip my-trace.csv"],
        replaced: &[("cassuto/fig06-08", "cassuto/fig06-08 --out reproduced")],
    },
    SetUp {
        page: "docs/validation.md",
        needs: &["fio"],
        before: &[
            "imbrex simulate 'rw=randread,bs=4k,number_ios=3000,seed=1' --drive cmr-7200 --no-baseline --per-io --out made",
            "cp made/ios.parquet MEASURED",
        ],
        // The measured drive is a simulated one. The tests of `drive import` write descriptions of their own.
        replaced: &[
            ("imbrex drive import NAME.parv --out name.toml", "true"),
            ("/dev/sdX", "sim:cmr-7200"),
            ("n.sock &   # end it with: kill %1", "n.sock & until [ -S /tmp/n.sock ]; do sleep 0.1; done"),
            ("--runtime=60", "--runtime=3"),
            ("/tmp/", "FOLDER/"),
        ],
    },
];

/// Block of commands that does not run.
struct Exempt {
    page: &'static str,
    /// Beginning of the first line of the block.
    begins: &'static str,
    /// Reason for which it does not run.
    because: &'static str,
}

const EXEMPT: &[Exempt] = &[
    Exempt { page: "README.md", begins: "make install", because: "builds the program anew" },
    Exempt { page: "README.md", begins: "make demo", because: "builds the program, and runs this test" },
    Exempt { page: "docs/drive.md", begins: "imbrex drive check", because: "needs a damaged medium" },
    Exempt { page: "docs/fuzzing.md", begins: "rustup", because: "needs a nightly toolchain" },
    Exempt { page: "docs/is-my-drive-shingled.md", begins: "echo", because: "changes the settings of a real drive" },
    Exempt { page: "docs/mutants.md", begins: "make mutants", because: "takes days" },
    Exempt {
        page: "docs/serve.md",
        begins: "imbrex serve disk.img --nbd tcp",
        because: "needs certificates and a port",
    },
    Exempt {
        page: "docs/tutorial.md",
        begins: "cp -r examples",
        because: "builds a copy of the example, which the workspace builds",
    },
    Exempt {
        page: "docs/tutorial.md",
        begins: "cargo run",
        because: "builds a copy of the example, which the workspace builds",
    },
    Exempt {
        page: "docs/ublk.md",
        begins: "imbrex drive create",
        because: "needs a kernel with ublk: make test-guest",
    },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command of a page.
#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    /// Output that the page shows; `None` if it shows none.
    shown: Option<Vec<String>>,
}

/// A block of commands of a page: its first line, and its commands.
struct Block {
    begins: String,
    steps: Vec<Step>,
}

/// Words with which a command of a page begins.
const COMMANDS: [&str; 24] = [
    "imbrex ", "sudo ", "make ", "cargo ", "rustup ", "pip ", "cp ", "cd ", "mkdir ", "kill ", "nbdinfo ", "nbdcopy ",
    "fio ", "lsblk ", "echo ", "printf ", "until ", "touch ", "device=", "blkzone ", "mkfs", "scripts/", "docker ",
    "install ",
];

/// Returns the blocks of commands of a page.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let inside: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| !line.starts_with("```")).collect();
        let Some(&(_, first)) = inside.first() else { continue };
        let is_command = |line: &str| COMMANDS.iter().any(|word| line.starts_with(word));
        let steps = match language {
            "console" => console(&inside),
            "" | "sh" | "bash" if is_command(first) => script(&inside),
            _ => continue,
        };
        blocks.push(Block { begins: first.trim_start_matches("$ ").to_string(), steps });
    }
    blocks
}

fn console(lines: &[(usize, &str)]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for &(number, line) in lines {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step { line: number + 1, command: command.into(), shown: None }),
            (None, Some(step)) => match &mut step.shown {
                None if step.command.ends_with('\\') => step.command.push_str(&format!("\n{line}")),
                shown => shown.get_or_insert_default().push(line.trim_end().to_string()),
            },
            (None, None) => panic!("line {}: a block begins with its first command", number + 1),
        }
    }
    steps
}

fn script(lines: &[(usize, &str)]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let is_command = |(_, line): &&(usize, &str)| !line.trim().is_empty() && !line.starts_with('#');
    for &(number, line) in lines.iter().filter(is_command) {
        match steps.last_mut() {
            Some(step) if step.command.ends_with('\\') => step.command.push_str(&format!("\n{line}")),
            _ => steps.push(Step { line: number + 1, command: line.into(), shown: None }),
        }
    }
    steps
}

/// Returns whether `line` is as `shown`, in which `…` stands for any text.
fn line_fits(shown: &str, line: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().expect("a split has a part")) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Returns whether `lines` are as `shown`. A line `…` of `shown` stands for any lines.
fn fits(shown: &[String], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, others)) if first == "…" => (0..=lines.len()).any(|skipped| fits(others, &lines[skipped..])),
        Some((first, others)) => {
            lines.split_first().is_some_and(|(line, rest)| line_fits(first, line) && fits(others, rest))
        }
    }
}

/// Returns `text` of a page with the replacements of the page.
fn replaced(set_up: &SetUp, text: &str, folder: &Path) -> String {
    let replacements = set_up.replaced.iter();
    let text = replacements.fold(text.to_string(), |text, (from, to)| text.replace(from, to));
    text.replace("FOLDER", &folder.to_string_lossy())
}

/// Returns the outputs and exit codes of `steps`, which run in one shell in `folder`. A step that begins a process in
/// the background has no output.
fn run(set_up: &SetUp, steps: &[&Step], folder: &Path) -> Vec<(String, i32)> {
    let mut script = String::from("exec 2>&1\n");
    for line in set_up.before {
        let line = line.replace("PAGE", &root().join(set_up.page).to_string_lossy());
        script.push_str(&format!("{{ {line}; }} >>preparations.log 2>&1 || {{ cat preparations.log; exit 1; }}\n"));
    }
    let mut unmatched: Vec<&str> = set_up.replaced.iter().map(|(text, _)| *text).collect();
    for step in steps {
        let shown = step.shown.iter().flatten().map(String::as_str);
        let is_in = |text: &str| shown.clone().chain([step.command.as_str()]).any(|line| line.contains(text));
        unmatched.retain(|text| !is_in(text));
        let command = replaced(set_up, &step.command, folder);
        let background = command.trim_end().ends_with('&') || command.contains(" & ");
        let to = if background { " >>background.log 2>&1" } else { "" };
        script.push_str(&format!("printf '\\001\\n'\n{{ {command}\n}}{to}\nprintf '\\002%s\\n' $?\n"));
    }
    assert_eq!(unmatched, <[&str; 0]>::default(), "{}: texts that no command has", set_up.page);
    // A page that fails half-way leaves no mount, no loop device and no server.
    script.push_str("losetup -a 2>/dev/null | grep -F \"($PWD\" | cut -d : -f 1 | xargs -r -n 1 losetup -d\n");
    script.push_str("grep -F \" $PWD\" /proc/mounts | cut -d ' ' -f 2 | xargs -r -n 1 umount -l\n");
    script.push_str("kill $(jobs -p) 2>/dev/null\nwait\n");
    let output = Command::new("timeout")
        .args(["300", "bash", "-c", &script])
        .current_dir(folder)
        .env("PATH", search_path())
        .env("XDG_RUNTIME_DIR", folder)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut outputs = said.split("\u{1}\n");
    assert_eq!(outputs.next(), Some(""), "{}: a preparation", set_up.page);
    outputs
        .map(|part| {
            let (output, code) =
                part.rsplit_once('\u{2}').unwrap_or_else(|| panic!("it ended amid a command:\n{said}"));
            (output.to_string(), code.lines().next().unwrap_or_default().parse().expect("an exit code"))
        })
        .collect()
}

/// Returns the folders in which the commands find programs: that of the built program first.
fn search_path() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_imbrex"));
    let folder = program.parent().expect("a program lies in a folder").display();
    format!("{folder}:{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Returns the entry of [`EXEMPT`] for a block of a page, if there is one.
fn exemption(page: &str, block: &Block) -> Option<&'static Exempt> {
    EXEMPT.iter().find(|exempt| exempt.page == page && block.begins.starts_with(exempt.begins))
}

/// Runs the blocks of the page, and returns the number of the commands, and a text for each that fails or prints
/// something else.
fn judge(set_up: &SetUp) -> (usize, Vec<String>) {
    let text = std::fs::read_to_string(root().join(set_up.page)).expect("the page is there");
    let blocks = blocks(&text);
    let is_run = |block: &&Block| exemption(set_up.page, block).is_none();
    let steps: Vec<&Step> = blocks.iter().filter(is_run).flat_map(|block| &block.steps).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let outputs = run(set_up, &steps, folder.path());
    assert_eq!(outputs.len(), steps.len(), "{}: {outputs:?}", set_up.page);
    let mut faults = Vec::new();
    for (step, (output, code)) in steps.iter().zip(outputs) {
        let place = format!("{}:{}: `{}`", set_up.page, step.line, step.command);
        let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
        let replaced = |line: &String| replaced(set_up, line, folder.path());
        let shown: Option<Vec<String>> = step.shown.as_ref().map(|lines| lines.iter().map(replaced).collect());
        let shown = shown.as_deref();
        let may_fail = shown.is_some_and(|shown| shown[0].starts_with("imbrex: "));
        if (code != 0) != may_fail {
            faults.push(format!("{place} ends with {code}:\n{output}"));
        } else if let Some(shown) = shown.filter(|shown| !fits(shown, &lines)) {
            faults.push(format!("{place} shows\n{}\nand prints\n{output}", shown.join("\n")));
        }
    }
    (steps.len(), faults)
}

fn page(name: &str) {
    let set_up = SET_UPS.iter().find(|set_up| set_up.page == name).expect("it has a set-up");
    if set_up.needs.contains(&FUSE) && File::options().read(true).write(true).open(FUSE).is_err() {
        return eprintln!("skipped: {name}: {FUSE} is not there, or not for this user");
    }
    if set_up.needs.contains(&LAB) && !crate::lab::has_kernel(name) {
        return;
    }
    let is_there = |program: &&str| search_path().split(':').any(|folder| Path::new(folder).join(program).exists());
    if let Some(program) = set_up.needs.iter().find(|&&program| program != LAB && !is_there(&program)) {
        return eprintln!("skipped: {name}: {program} is not here");
    }
    if set_up.needs.contains(&"losetup") {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(1 << 20).expect("there is room");
        // It prints why it is skipped.
        let Some(_device) = LoopDevice::over(&file.path().to_string_lossy()) else { return };
    }
    let (count, faults) = judge(set_up);
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    println!("{name}: {count} commands");
}

/// Returns the pages with blocks of commands, by their paths in the repository. The pages of the papers have none.
fn pages_with_commands() -> Vec<String> {
    let root = root();
    let mut pages = Vec::new();
    let mut folders = vec![root.join("docs")];
    let mut files = vec![root.join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("it is a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a page");
        if !blocks(&text).is_empty() {
            pages.push(file.strip_prefix(&root).expect("it lies there").to_string_lossy().into_owned());
        }
    }
    pages.sort();
    pages
}

#[test]
fn every_page_with_commands_is_run_and_at_most_ten_blocks_are_exempt() {
    let is_run = |page: &String| SET_UPS.iter().any(|set_up| set_up.page == page);
    let is_exempt = |page: &String| {
        let text = std::fs::read_to_string(root().join(page)).expect("a page");
        blocks(&text).iter().all(|block| exemption(page, block).is_some())
    };
    let missing: Vec<String> =
        pages_with_commands().into_iter().filter(|page| !is_run(page) && !is_exempt(page)).collect();
    assert_eq!(missing, <[String; 0]>::default(), "pages with commands that no test runs");
    assert!(EXEMPT.len() <= 10);
    for exempt in EXEMPT {
        let blocks = blocks(&std::fs::read_to_string(root().join(exempt.page)).expect("a page"));
        let count = blocks.iter().filter(|block| block.begins.starts_with(exempt.begins)).count();
        assert!(count == 1 && !exempt.because.is_empty(), "{}: {} has {count} blocks", exempt.page, exempt.begins);
    }
}

#[test]
fn an_output_that_differs_is_found() {
    let shown = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    assert!(fits(&shown("a … b\n…\nc"), &["a 5 ms b", "x", "y", "c"]));
    assert!(fits(&shown("…\nc"), &["c"]));
    assert!(!fits(&shown("a … b"), &["a 5 ms c"]));
    assert!(!fits(&shown("a"), &["a", "b"]));
    assert!(!fits(&shown("a\n…\nc"), &["a", "x"]));
    assert!(line_fits("…", "") && line_fits("a…", "a") && !line_fits("ab…ba", "aba"));
}

macro_rules! pages {
    ($($name:ident: $page:literal,)*) => {
        $(#[test]
        fn $name() {
            page($page);
        })*

        #[test]
        fn every_set_up_has_a_test() {
            assert_eq!(SET_UPS.iter().map(|set_up| set_up.page).collect::<Vec<_>>(), [$($page),*]);
        }
    };
}

pages! {
    the_readme: "README.md",
    tests_of_other_projects: "docs/ci.md",
    drives: "docs/drive.md",
    causes_of_latencies: "docs/explain.md",
    benchmarks_of_file_systems: "docs/fs/bench.md",
    the_guide_to_file_systems: "docs/fs/guide.md",
    operations_of_file_systems: "docs/fs/operations.md",
    is_my_drive_shingled: "docs/is-my-drive-shingled.md",
    the_lab: "docs/lab.md",
    the_probe: "docs/probe.md",
    serving: "docs/serve.md",
    traces: "docs/traces.md",
    the_tutorial: "docs/tutorial.md",
    validation: "docs/validation.md",
}
