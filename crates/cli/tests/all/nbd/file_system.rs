//! Goal: a file system on a served drive keeps synced files. Method: ext4 on a loop device over nbdfuse; files are
//! written, some are synced, then the power fails: once by SIGKILL of the server, once by a medium that keeps a random
//! part of the unflushed writes. After e2fsck has replayed ext4's journal, a second check finds nothing, and every
//! synced file is intact.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use imbrex_device::drive::{Making, header_of};
use imbrex_device::media::Media;
use imbrex_device::media::crashing::Crashing;
use imbrex_device::media::memory::Memory;
use imbrex_device::pacing::Pace;
use imbrex_device::{EmulatedDrive, Store};
use imbrex_serve::{Address, DriveServer};
use imbrex_sim::{Drive, DriveSpec};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use super::common::*;

/// A drive served over NBD as a file, by nbdfuse.
struct Fused {
    child: Child,
    file: PathBuf,
}

impl Fused {
    fn start(folder: &Path, socket: &Path) -> Fused {
        let file = folder.join("disk");
        File::create(&file).unwrap();
        let child = Command::new("nbdfuse")
            .args([file.as_os_str(), "--unix".as_ref(), socket.as_os_str()])
            .stdin(Stdio::null())
            .spawn()
            .expect("nbdfuse starts");
        until("nbdfuse", || (fs::metadata(&file).unwrap().len() > 0).then_some(()));
        Fused { child, file }
    }

    fn path(&self) -> &str {
        self.file.to_str().unwrap()
    }
}

impl Drop for Fused {
    fn drop(&mut self) {
        output("fusermount3", &["-u", "-z", self.path()]);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loop device over the file of nbdfuse: the kernel asks for whole sectors, which not every program does.
struct Looped {
    device: String,
}

impl Looped {
    /// Creates the loop device; `None` where loop devices are not available.
    fn new(fused: &Fused) -> Option<Looped> {
        let looped = output("losetup", &["-f", "--show", fused.path()]);
        let device = String::from_utf8(looped.stdout).unwrap().trim().to_string();
        looped.status.success().then_some(Looped { device })
    }

    /// Mounts the file system on the device at a folder in `folder`; `None` where that is not allowed.
    fn mount(&self, folder: &Path) -> Option<Mounted> {
        let place = folder.join("mounted");
        fs::create_dir_all(&place).unwrap();
        let said = output("mount", &["-t", "ext4", &self.device, place.to_str().unwrap()]);
        said.status.success().then_some(Mounted { place })
    }
}

impl Drop for Looped {
    fn drop(&mut self) {
        output("losetup", &["-d", &self.device]);
    }
}

/// A mounted file system.
struct Mounted {
    place: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        output("umount", &[self.place.to_str().unwrap()]);
    }
}

fn contents(number: u32) -> Vec<u8> {
    (0..20_000 + number * 997).map(|index| (index.wrapping_mul(2_654_435_761 ^ number) >> 24) as u8).collect()
}

/// Makes ext4 and writes thirty files, of which the first twenty are synced. Returns `None` where that is not possible.
fn write_files(fused: &Fused, folder: &Path) -> Option<(Mounted, Looped)> {
    let looped = Looped::new(fused);
    if let Some(looped) = &looped {
        run("mkfs.ext4", &["-q", "-F", "-b", "4096", &looped.device]);
    }
    let Some((mounted, looped)) = looped.and_then(|looped| Some((looped.mount(folder)?, looped))) else {
        eprintln!("skipped: ext4 on a served drive (no loop device can be mounted here)");
        return None;
    };
    for number in 0..30 {
        let mut file = File::create(mounted.place.join(format!("file-{number}"))).unwrap();
        file.write_all(&contents(number)).unwrap();
        if number < 20 {
            file.sync_all().unwrap();
        }
    }
    File::open(&mounted.place).unwrap().sync_all().unwrap();
    Some((mounted, looped))
}

/// Asserts that after the power failure recovery succeeds, a second check finds nothing, and every synced file is
/// intact.
fn check_files(fused: &Fused, folder: &Path) {
    let looped = Looped::new(fused).expect("there was one before");
    let recovery = output("e2fsck", &["-p", "-f", &looped.device]);
    assert!(recovery.status.code().is_some_and(|code| code <= 1), "{}", String::from_utf8_lossy(&recovery.stdout));
    run("e2fsck", &["-n", "-f", &looped.device]);
    let mounted = looped.mount(folder).expect("it could be mounted before");
    for number in 0..20 {
        let read = fs::read(mounted.place.join(format!("file-{number}"))).unwrap();
        assert!(read == contents(number), "file {number} was synced and is not whole");
    }
}

const TOOLS: [&str; 5] = ["nbdfuse", "mkfs.ext4", "e2fsck", "losetup", "fusermount3"];

#[test]
fn synced_files_outlive_a_killed_server() {
    if !has(&TOOLS, "ext4 on a served drive") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let layer = imbrex_layer::registry::named("media-cache").expect("it is registered");
    let image = image(folder.path(), &small_drive(folder.path(), layer));
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    {
        let fused = Fused::start(folder.path(), &server.socket);
        let Some((mounted, looped)) = write_files(&fused, folder.path()) else { return };
        server.kill();
        drop((mounted, looped));
    }
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    check_files(&Fused::start(folder.path(), &server.socket), folder.path());
    server.stop();
}

/// A crashing medium that the test and the drive share.
#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<Crashing>>);

impl Media for Shared {
    fn len(&self) -> u64 {
        self.0.lock().unwrap().len()
    }
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        self.0.lock().unwrap().read_at(offset, into)
    }
    fn write_at(&mut self, offset: u64, from: &[u8]) -> std::io::Result<()> {
        self.0.lock().unwrap().write_at(offset, from)
    }
    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> std::io::Result<()> {
        self.0.lock().unwrap().write_together(pieces)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().unwrap().flush()
    }
}

/// Writes the contents of `memory` to a new image file.
fn save(mut memory: Memory, path: &Path) {
    let mut bytes = vec![0; 1 << 20];
    let mut file = File::create_new(path).unwrap();
    for offset in (0..memory.len()).step_by(bytes.len()) {
        let length = (memory.len() - offset).min(bytes.len() as u64) as usize;
        memory.read_at(offset, &mut bytes[..length]).unwrap();
        file.write_all(&bytes[..length]).unwrap();
    }
}

#[test]
fn synced_files_outlive_a_power_cut() {
    if !has(&TOOLS, "ext4 and a power cut") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let layer = imbrex_layer::registry::named("media-cache").expect("it is registered");
    let words = small_drive(folder.path(), layer);
    let spec = DriveSpec::parse(&words).unwrap();
    let text = fs::read_to_string(&spec.profile).unwrap();
    let profile = imbrex_disk::Profile::parse(&spec.profile, &text, &[]).unwrap();
    let drive = Drive::assemble(&words, profile, layer.name, &spec.parameters).unwrap();
    let making = Making { journal_bytes: 16 << 20, ..Making::default() };
    let media = Shared(Arc::new(Mutex::new(Crashing::new(Memory::new(), 512))));
    let boxed: Box<dyn Media> = Box::new(media.clone());
    let opened = Store::create(boxed, header_of(&drive, &spec, &making).unwrap()).unwrap();
    let socket = folder.path().join("socket");
    let (front, pacer) = DriveServer::start(EmulatedDrive::new(opened), Pace::None, false);
    let server = imbrex_serve::Server::bind(
        &Address::Unix(socket.clone()),
        front.clone(),
        None,
        imbrex_serve::Limits::default(),
    )
    .unwrap();
    let is_ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&|| is_ending.load(Ordering::SeqCst)).unwrap());
        let fused = Fused::start(folder.path(), &socket);
        if let Some((mounted, looped)) = write_files(&fused, folder.path()) {
            let cut = {
                let crashing = media.0.lock().unwrap();
                let mut random = Xoshiro256StarStar::seed_from_u64(3);
                crashing.cut(|_, _| random.next_u64() % 2 == 0)
            };
            save(cut, &folder.path().join("image"));
            drop((mounted, looped));
        }
        drop(fused);
        is_ending.store(true, Ordering::SeqCst);
    });
    front.stop(pacer).unwrap();
    let image = folder.path().join("image");
    if image.exists() {
        let server = Server::start(folder.path(), &[image.to_str().unwrap(), "--time", "none"]);
        check_files(&Fused::start(folder.path(), &server.socket), folder.path());
        server.stop();
    }
}
