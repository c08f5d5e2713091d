//! `imbrex drive snapshot`: makes a consistent copy of an image. An image that no process has open is copied here. A
//! served image is copied by its server, on a request to the control socket.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use imbrex_device::media::host_file::FileIdentity;
use imbrex_device::snapshot::{self, SnapshotError};
use imbrex_device::{DeviceError, EmulatedDrive};
use imbrex_serve::control::client::{AskError, ask};
use imbrex_serve::control::place;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::error::ExitCode;
use crate::{interrupt, json, output};
use imbrex::Failure;
use imbrex::Progress;
use imbrex::human;

/// Time after which the progress bar of a snapshot is shown.
const BAR_AFTER: Duration = Duration::from_secs(1);
/// Interval at which the server is asked for the progress.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Interval at which Ctrl-C is checked meanwhile.
const WAIT: Duration = Duration::from_millis(20);
/// Longest time that the server may take to report the progress.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

/// Takes the snapshot.
pub(super) fn run(
    image: &Path,
    copy: &Path,
    control: Option<&Path>,
    as_json: bool,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    refuse_same(image, copy)?;
    interrupt::answer_with("ending the snapshot; nothing is left of it");
    let bar = Bar::new(as_json || quiet);
    let taken = match control {
        Some(control) => of_server(image, copy, control, &bar),
        None => match of_file(image, copy, &bar) {
            Err(SnapshotError::Image(in_use @ DeviceError::InUse { .. })) => {
                of_server(image, copy, &find_control(image, &in_use)?, &bar)
            }
            taken => taken.map_err(|error| failure(image, copy, &error)),
        },
    };
    bar.end();
    let document = taken?;
    if as_json {
        output::json(&document)?;
    } else {
        output::line(&words(copy, &document));
    }
    Ok(ExitCode::Done)
}

/// Returns an error if image and copy are one file. Its message is clearer than the one for any existing file.
fn refuse_same(image: &Path, copy: &Path) -> Result<(), Failure> {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|facts| FileIdentity::of(&facts));
    match (identity(image), identity(copy)) {
        (Some(one), Some(other)) if one == other => {
            Err(Failure::failed(format!("{} and {} are one file", image.display(), copy.display()))
                .or_try("another name for the copy"))
        }
        _ => Ok(()),
    }
}

/// Progress bar of a snapshot, shown only after [`BAR_AFTER`].
struct Bar {
    bar: std::cell::OnceCell<ProgressBar>,
    begun: Instant,
    is_silent: bool,
}

impl Bar {
    fn new(is_silent: bool) -> Bar {
        Bar { bar: std::cell::OnceCell::new(), begun: Instant::now(), is_silent }
    }

    fn tell(&self, done: u64, all: u64) {
        if self.begun.elapsed() < BAR_AFTER {
            return;
        }
        let bar = self.bar.get_or_init(|| Progress::on_terminal(self.is_silent).bytes("copying"));
        bar.set_length(all);
        bar.set_position(done);
    }

    fn end(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// Copies an image that no process has open. A damaged image that cannot be opened is refused: a copy could not be opened
/// either.
fn of_file(image: &Path, copy: &Path, bar: &Bar) -> Result<Value, SnapshotError> {
    let mut drive = EmulatedDrive::open_file_to_look(image)?;
    for notice in drive.store_mut().notices() {
        notice!("{}: {notice}; the copy has the same damage", image.display());
    }
    drop(drive);
    let taken = snapshot::of_file(image, copy, &mut |done, all| {
        bar.tell(done, all);
        !interrupt::requested()
    })?;
    Ok(document(
        image,
        copy,
        &json!({
            "method": taken.method.name(),
            "copied_bytes": taken.bytes,
            "pause_ns": 0,
            "uuid": taken.uuid,
            "snapshot_uuid": taken.snapshot,
        }),
    ))
}

fn document(image: &Path, copy: &Path, taken: &Value) -> Value {
    let mut document =
        json!({ "schema": "imbrex.drive-snapshot/1", "image": json::path(image), "copy": json::path(copy) });
    for key in ["method", "copied_bytes", "pause_ns", "uuid", "snapshot_uuid"] {
        document[key] = taken[key].clone();
    }
    document
}

/// Returns the path of the control socket of the server that has `image` open.
fn find_control(image: &Path, in_use: &DeviceError) -> Result<PathBuf, Failure> {
    let unknown = |reason: String| {
        Failure::failed(format!("{} is in use by another process, {reason}", image.display())).or_try(
            "end that process, or `--control PATH` if it is a server: the PATH of its `imbrex serve --control PATH`",
        )
    };
    let facts = std::fs::metadata(image).map_err(|_| Failure::failed(in_use))?;
    let path = place::of_image(&FileIdentity::of(&facts))
        .map_err(|error| unknown(format!("and its control socket cannot be looked for: {error}")))?;
    match imbrex_serve::socket::is_answered(&path) {
        true => Ok(path),
        false => Err(unknown(format!("and no server of yours answers for it at {}", path.display()))),
    }
}

/// Asks the server at the control socket `control` to copy its image, and waits for the answer.
fn of_server(image: &Path, copy: &Path, control: &Path, bar: &Bar) -> Result<Value, Failure> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
    };
    let to = absolute(copy)?;
    let (to_text, from_text) = (json::exact(&to)?, json::exact(&absolute(image)?)?);
    let mut request = json!({ "verb": "snapshot", "to": to_text, "image": from_text });
    if let Ok(facts) = std::fs::metadata(image) {
        let identity = FileIdentity::of(&facts);
        request["device"] = json!(identity.device);
        request["inode"] = json!(identity.inode);
    }
    let (tell, told) = mpsc::channel();
    let asked = control.to_path_buf();
    std::thread::spawn(move || tell.send(ask(&asked, &request, None)));
    let mut looked = Instant::now();
    let answer = loop {
        match told.recv_timeout(WAIT) {
            Ok(answer) => break answer,
            // The server ends the snapshot when the connection closes, which happens with the end of this process.
            Err(RecvTimeoutError::Timeout) if interrupt::requested() => {
                let words =
                    "interrupted: the server stops too, and nothing is left unless the copy had just become whole";
                return Err(Failure::failed(words));
            }
            Err(RecvTimeoutError::Timeout) if looked.elapsed() >= LOOK_EVERY => {
                look(control, bar);
                looked = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Err(AskError::Broken),
        }
    };
    match answer {
        Ok(answer) => Ok(document(image, copy, &answer)),
        Err(error) => {
            if matches!(error, AskError::Broken) {
                snapshot::discard_unfinished(&to);
            }
            Err(not_taken(image, control, &error))
        }
    }
}

/// Shows the progress that the server reports.
fn look(control: &Path, bar: &Bar) {
    // A failed request is ignored: the next one may succeed.
    let Ok(stats) = ask(control, &json!({ "verb": "stats" }), Some(LOOK_PATIENCE)) else { return };
    let number = |key: &str| stats["snapshot"][key].as_u64();
    if let (Some(done), Some(all)) = (number("copied_bytes"), number("all_bytes")) {
        bar.tell(done, all);
    }
}

/// Returns the failure for a snapshot that the server did not take, with a remedy.
fn not_taken(image: &Path, control: &Path, error: &AskError) -> Failure {
    let (image, control) = (image.display(), control.display());
    match error {
        AskError::Unreachable(cause) => Failure::failed(format!("no server answers at {control}: {cause}"))
            .or_try(format!("the same command without --control, if no server has {image} open")),
        AskError::Broken => {
            Failure::failed(format!("the server of {image} ended before the snapshot was complete; there is no copy"))
                .or_try("the same command again: an image without a server is copied directly")
        }
        AskError::Foreign => Failure::failed(format!("{control} is not the control socket of a served drive")),
        AskError::Refused { code, message } => {
            let failure = Failure::failed(message);
            match code.as_str() {
                "exists" => failure.or_try("another name for the copy"),
                "busy" => failure.or_try("the same command later"),
                _ => failure,
            }
        }
    }
}

/// Returns the failure for an image without a server that could not be copied, with a remedy.
fn failure(image: &Path, copy: &Path, error: &SnapshotError) -> Failure {
    let failure = Failure::failed(error);
    match error {
        SnapshotError::Exists(_) => failure.or_try("another name for the copy"),
        SnapshotError::Target { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => {
            failure.or_try(format!("make the folder of {} first", copy.display()))
        }
        SnapshotError::Image(DeviceError::Image { .. }) => {
            failure.or_try(format!("`cp`, which copies any file, if {} is meant", image.display()))
        }
        _ => failure,
    }
}

fn words(copy: &Path, document: &Value) -> String {
    let number = |key: &str| document[key].as_u64().unwrap_or(0);
    let how = match document["method"].as_str() {
        Some("reflink") => "shared with the image",
        _ => "copied",
    };
    let pause = match number("pause_ns") {
        0 => String::new(),
        pause => format!(", requests waited {}", human::duration_ns(pause)),
    };
    let (bytes, name) = (human::bytes(number("copied_bytes")), document["snapshot_uuid"].as_str().unwrap_or_default());
    format!("{}: {bytes} {how}{pause} ({name})", copy.display())
}
