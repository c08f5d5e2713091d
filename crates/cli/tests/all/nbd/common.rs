//! Helpers of the tests of served drives: a server of the built program, and small drives of every layer. The minimal
//! client is that of `imbrex-testkit`.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use imbrex_layer::LayerInfo;
use imbrex_testkit::Program;
pub(crate) use imbrex_testkit::nbd_client::*;
pub(crate) use imbrex_testkit::patience::until;

/// Returns whether every program is installed; if not, prints that `what` is skipped.
pub(crate) fn has(programs: &[&str], what: &str) -> bool {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").iter().flat_map(std::env::split_paths).chain([PathBuf::from("/usr/sbin")]).collect();
    let missing = programs.iter().find(|program| !folders.iter().any(|folder| folder.join(program).is_file()));
    if let Some(program) = missing {
        eprintln!("skipped: {what} (no {program}; scripts/install.sh test installs it)");
    }
    missing.is_none()
}

/// Runs a program, which must succeed, and returns its output.
pub(crate) fn run(program: &str, words: &[&str]) -> String {
    let output = output(program, words);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {words:?}: {}\n{text}", output.status);
    text
}

/// Runs a program to its end.
pub(crate) fn output(program: &str, words: &[&str]) -> Output {
    Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Runs the built program to its end.
pub(crate) fn imbrex(words: &[&str]) -> Output {
    output(env!("CARGO_BIN_EXE_imbrex"), words)
}

/// `imbrex serve` at a Unix socket in a folder.
pub(crate) struct Server(imbrex_testkit::Server);

impl Server {
    /// Starts `imbrex serve` with `words`, and waits until it listens.
    pub(crate) fn start(folder: &Path, words: &[&str]) -> Server {
        Server(imbrex_testkit::Server::start(&Program::new(env!("CARGO_BIN_EXE_imbrex")), folder, words))
    }

    /// Ends the server by Ctrl-C and returns its messages.
    pub(crate) fn stop(self) -> String {
        self.0.stop().unwrap_or_else(|said| panic!("{said}"))
    }

    /// Ends the server by Ctrl-C. Returns its messages, or, if it did not end with exit code 0, its exit status and its
    /// messages.
    pub(crate) fn ended(self) -> Result<String, String> {
        self.0.stop()
    }
}

impl Deref for Server {
    type Target = imbrex_testkit::Server;

    fn deref(&self) -> &imbrex_testkit::Server {
        &self.0
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut imbrex_testkit::Server {
        &mut self.0
    }
}

/// Writes a profile of a small drive for `layer` into `folder`: some 50 MB, so that caches fill and are cleaned.
/// Returns the drive as `--drive` takes it.
pub(crate) fn small_drive(folder: &Path, layer: &LayerInfo) -> String {
    let recording = layer.recordings[0];
    let (geometry, section) = match recording {
        "interlaced" => (
            "layout = 'bottom-then-top'\nsurfaces = 1\nzones = [{ tracks = 384, track_sectors = 256 }]\n\
             interlaced = { group_tracks = 24 }",
            "kind = 'interlaced'".to_string(),
        ),
        "block-interference" => (ROUND, "kind = 'block-interference'\ninterference_sectors = 256".into()),
        "shingled" => (ROUND, "kind = 'shingled'\nhead_tracks = 2".into()),
        other => (ROUND, format!("kind = '{other}'")),
    };
    let text = format!(
        "name = 'small'\nsummary = 'a small drive'\ndefault_layer = 'conventional'\n[geometry]\nrotation_ns = 8_000_000\n\
         {geometry}\n[mechanics]\nrotation = 'exact'\nseek = {{ model = 'linear', min_ns = 100_000, max_ns = 1_000_000 }}\n\
         [recording]\n{section}\n"
    );
    let path = folder.join(format!("{}.toml", layer.name));
    fs::write(&path, text).expect("the folder is ours");
    let parameters = parameters(layer);
    let colon = if parameters.is_empty() { "" } else { ":" };
    format!("{}+{}{colon}{parameters}", path.display(), layer.name)
}

const ROUND: &str = "layout = 'cylinder'\nsurfaces = 2\nzones = [{ tracks = 384, track_sectors = 256 }]";

/// Returns parameters that suit a drive of 50 MB; a layer that is not named here takes those of its toys.
fn parameters(layer: &LayerInfo) -> &str {
    match layer.name {
        "block-swap" => "block_size=16k,interval=200,background_every=4,watch=0",
        "flip-cache" | "track-cache" => "cache_tracks=8,interval=200,background_every=4,watch=0",
        "track-flip" | "track-map" => "interval=200,background_every=4,watch=0",
        "top-buffer" | "write-buffer" => "buffer_share=20%",
        "fully-associative" => "band_size=512k,zone_size=8MiB,log_bands=3",
        "log-structured" => "zone_size=1MiB,reserve=10%,clean_step=256k",
        "media-cache" => {
            "cache_size=6MiB,map_entries=300,band_tracks=4,out_of_band=1,half_track_payload=48k,packet_writes=16,\
             large_write=64k,large_payload=96k,map_merge_every=20,map_merge_tracks=1,stream_size=256k"
        }
        "region-rmw" => "region_size=1MiB",
        "set-associative" => "region_size=1MiB,cache_share=10%",
        "s-blocks" => "sections=2,sblock_size=256k,sblock_share=10%,cache_share=10%",
        _ => layer.toys[0],
    }
}

/// Creates the image of a small drive and returns its path.
pub(crate) fn image(folder: &Path, drive: &str) -> String {
    let path = folder.join("image").display().to_string();
    let made = imbrex(&["drive", "create", &path, "--drive", drive]);
    assert!(made.status.success(), "{drive}: {}", String::from_utf8_lossy(&made.stderr));
    path
}
