//! `imbrex serve`: serves an emulated drive as a block device until Ctrl-C.

mod control;

use std::cell::Cell;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use imbrex_device::EmulatedDrive;
use imbrex_device::media::host_file::Placement;
use imbrex_device::pacing::Pace;
use imbrex_serve::observe::Observed;
use imbrex_serve::tls::TlsServer;
use imbrex_serve::ublk::BlockDevice;
use imbrex_serve::vhost_user::VhostUserServer;
use imbrex_serve::{Address, DriveServer, Facts, Limits, PageLimits, Server, Visitors, http};

use self::control::Controlled;
use crate::args::{LimitArgs, ServeArgs};
use crate::displaced::Displaced;
use crate::drive::fault as faults;
use crate::error::ExitCode;
use crate::interrupt;
use crate::service;
use imbrex::Failure;
use imbrex::drives;
use imbrex::human;

/// Interval at which the ublk device is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The endpoint at which clients reach the drive.
enum Door {
    Nbd { server: Server, shown: String },
    Ublk(Box<BlockDevice>),
    VhostUser { server: VhostUserServer, shown: String },
}

/// Serves the drive until the program is interrupted.
pub(crate) fn run(args: &ServeArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let address = args.nbd.as_deref().map(str::parse::<Address>).transpose();
    let address = address.map_err(|reason| Failure::usage(format!("--nbd {reason}")))?;
    let pace: Pace = args.time.parse().map_err(|reason| Failure::usage(format!("--time {reason}")))?;
    let (limits, page_limits) = limits(&args.limits);
    let tls = tls(args)?;
    let mut drive = open(args)?;
    tell_damage(args.image.as_deref(), &mut drive);
    if args.window.is_some() {
        drive.watch();
    }
    if let Some(path) = &args.faults {
        let schedule = faults::read(path)?;
        schedule.check(drive.drive()).map_err(Failure::failed)?;
        drive.play_faults(schedule.faults())?;
    }
    let (front, pacer) = DriveServer::start(drive, pace, args.read_only);
    let visitors = address.is_some().then(|| Visitors::new(limits));
    let observed = Observed { front: front.clone(), visitors: visitors.clone() };
    let watchers = watchers(args, page_limits, &observed, quiet)?;
    let control = Controlled::start(args, &observed, quiet)?;
    // A port that the system chose is named in any case: no client could find it otherwise.
    let names_door = !quiet || matches!(&address, Some(Address::Tcp(host)) if chooses_port(host));
    // Control socket and live page are started first: clients expect both as soon as the NBD socket or block device
    // exists.
    let door = match (address, visitors, &args.vhost_user) {
        (Some(address), Some(visitors), _) => Door::nbd(&address, front.clone(), tls, visitors),
        (_, _, Some(path)) => Door::vhost_user(path, front.clone()),
        _ => Door::ublk(front.clone(), args.ublk.flatten()),
    };
    let served = door.map(|door| {
        if !quiet {
            tell_rules(front.facts(), &door);
        }
        if names_door {
            tell_door(&door, &front, pace);
        }
        service::report_ready();
        interrupt::answer_with("ending all connections, writing back the drive's cache");
        let shown = door.shown();
        door.serve(&front, &control).map_err(|words| Failure::failed(format!("serving at {shown}: {words}")))
    });
    // After a failure to listen, nothing else has asked the watcher threads to end.
    interrupt::request();
    for watcher in watchers {
        watcher.join().expect("a thread that only looks does not panic");
    }
    control.begin_end();
    let stopped = front.stop(pacer);
    control.end(&front, &stopped);
    let served = served?;
    let displaced = front.host_file().filter(|_| !args.read_only).and_then(|file| lost(file.placement(), file.path()));
    if !quiet {
        front.with(|_, statistics| report(statistics, pace));
        if let (Some(image), Ok(()), None) = (&args.image, &stopped, &displaced) {
            message!("{} is closed: all acknowledged writes are in it", image.display());
        }
    }
    served?;
    stopped?;
    match displaced {
        Some(words) => Err(Failure::failed(words)),
        None => Ok(ExitCode::Done),
    }
}

/// Returns whether `address` leaves the choice of the port to the system.
fn chooses_port(address: &str) -> bool {
    address.rsplit_once(':').map_or(address, |(_, port)| port) == "0"
}

/// Returns the message that the data of a closed image are lost, if its file is no longer at `path` under any name.
fn lost(placement: Placement, path: &Path) -> Option<String> {
    let path = path.display();
    match placement {
        Placement::InPlace | Placement::Renamed => None,
        Placement::Removed => Some(format!("{path} was removed while it was in use: its data are lost")),
        Placement::Replaced => Some(format!(
            "another file is at {path}: the data went to the file that was there before, and are lost unless that one \
             has another name"
        )),
    }
}

/// Prints the drive's name and size, and the address of the endpoint.
fn tell_door(door: &Door, front: &DriveServer, pace: Pace) {
    let (facts, shown) = (front.facts(), door.shown());
    let capacity = human::bytes(front.with(|drive, _| drive.capacity_bytes()));
    // Scripts wait for this line, so it is printed last.
    message!("serving {} ({capacity}, time {pace}) at {shown}; Ctrl-C ends it", facts.label);
}

/// Returns the failure to listen at the address given with `option`. `instead` describes the values that the option
/// takes.
pub(crate) fn cannot_listen(address: impl Display, option: &str, instead: &str, error: &io::Error) -> Failure {
    let failure = Failure::failed(format!("cannot listen at {address}: {error}"));
    match error.kind() {
        io::ErrorKind::InvalidInput => {
            Failure::usage(format!("cannot listen at {address}: {error}")).or_try(format!("{option} with {instead}"))
        }
        io::ErrorKind::NotFound => failure.or_try("make the socket's folder first, or name another"),
        io::ErrorKind::AddrInUse => failure.or_try(format!(
            "end the program that listens there (or remove the file of that name), or give {option} another address"
        )),
        io::ErrorKind::PermissionDenied => failure.or_try("a folder of your own, or a port above 1023"),
        _ => failure.or_try(format!("{option} with {instead}, of this machine")),
    }
}

/// Prints the damage that was found when the image was opened, and a command that lists the lost sectors.
fn tell_damage(image: Option<&Path>, drive: &mut EmulatedDrive) {
    let Some(image) = image.map(Path::display) else { return };
    let notices = drive.store_mut().notices();
    for notice in notices {
        message!("{image}: {notice}");
    }
    if !notices.is_empty() {
        message!(
            "{image} is damaged; it is served as far as it is whole. `imbrex drive check {image}` says what is lost"
        );
    }
}

/// Returns the limits on clients and on the live page that the options give.
fn limits(args: &LimitArgs) -> (Limits, PageLimits) {
    let seconds = |count: u32| Duration::from_secs(u64::from(count));
    let limits = Limits {
        connections: args.connections as usize,
        connections_per_peer: args.peer_connections as usize,
        handshake_time: seconds(args.handshake_time),
        request_time: seconds(args.request_time),
        reply_time: seconds(args.reply_time),
        payload_bytes: args.payload_memory,
        payload_bytes_per_peer: args.peer_payload_memory,
        newcomer_bytes_per_s: args.newcomer_rate,
        shortage_time: seconds(args.shortage_time),
        ..Limits::default()
    };
    let page_limits = PageLimits {
        connections: args.page_connections as usize,
        connections_per_peer: args.page_connections as usize / 2,
        header_bytes: usize::try_from(args.page_header).unwrap_or(usize::MAX),
        header_time: seconds(args.page_time),
        connection_time: 12 * seconds(args.page_time),
    };
    (limits, page_limits)
}

impl Door {
    fn nbd(
        address: &Address,
        front: Arc<DriveServer>,
        tls: Option<TlsServer>,
        visitors: Visitors,
    ) -> Result<Door, Failure> {
        let server = Server::bind_for(address, front, tls, visitors)
            .map_err(|error| cannot_listen(address, "--nbd", "unix:PATH or tcp:PORT", &error))?;
        let shown = match (server.port(), address) {
            (Some(port), Address::Tcp(host)) => {
                format!("nbd://{}:{port}", host.rsplit_once(':').map_or("", |(host, _)| host))
            }
            _ => address.to_string(),
        };
        Ok(Door::Nbd { server, shown })
    }

    fn ublk(front: Arc<DriveServer>, number: Option<u32>) -> Result<Door, Failure> {
        let device = BlockDevice::start(front, number);
        device.map(|device| Door::Ublk(Box::new(device))).map_err(|words| Failure::failed(format!("--ublk: {words}")))
    }

    fn vhost_user(path: &Path, front: Arc<DriveServer>) -> Result<Door, Failure> {
        let server = VhostUserServer::bind(path, front)
            .map_err(|error| cannot_listen(path.display(), "--vhost-user", "another path", &error))?;
        Ok(Door::VhostUser { server, shown: path.display().to_string() })
    }

    fn shown(&self) -> String {
        match self {
            Door::VhostUser { shown, .. } => shown.clone(),
            Door::Nbd { shown, .. } => shown.clone(),
            Door::Ublk(device) => device.path().display().to_string(),
        }
    }

    /// Serves until the program is interrupted, then closes the endpoint. A block device that is in use is served until
    /// it is unmounted.
    fn serve(self, front: &DriveServer, control: &Controlled) -> Result<(), String> {
        let (has_told, has_told_refusal) = (Cell::new(false), Cell::new(false));
        let displaced = Displaced::default();
        let should_end = || {
            if let Some(file) = front.host_file() {
                displaced.tell(file, &|| control.advice(file));
            }
            tell_faults(front);
            tell_trouble(front, &has_told);
            tell_refusal(front, &has_told_refusal);
            interrupt::requested()
        };
        match self {
            Door::Nbd { server, .. } => server.run(&should_end).map_err(|error| error.to_string()),
            Door::VhostUser { server, .. } => {
                let report = |error: &io::Error| message!("a virtual machine was disconnected: {error}");
                server.run(&should_end, report).map_err(|error| error.to_string())
            }
            Door::Ublk(device) => {
                while device.is_served() && !should_end() {
                    std::thread::sleep(LOOK_EVERY);
                }
                if device.is_in_use() {
                    message!("{} is still in use: unmount it, and the server ends", device.path().display());
                }
                while device.is_served() && device.is_in_use() {
                    std::thread::sleep(LOOK_EVERY);
                }
                device.stop()
            }
        }
    }
}

/// Prints the faults of the schedule that have occurred.
fn tell_faults(front: &DriveServer) {
    for played in front.with(|drive, _| drive.faults_played()) {
        match played.outcome {
            Ok(()) => message!("fault: {}", played.kind),
            Err(reason) => message!("this fault could not be injected: {}: {reason}", played.kind),
        }
    }
}

/// Prints once that the drive has stopped and clients get errors, with the reason and the remedy.
fn tell_trouble(front: &DriveServer, has_told: &Cell<bool>) {
    if has_told.get() {
        return;
    }
    if let Some(reason) = front.trouble() {
        has_told.set(true);
        message!(
            "the drive has stopped: {reason}; reads go on, every other request gets an error. End the server, fix the \
             cause and serve the image again: all flushed data are in it"
        );
    }
}

/// Prints once why a zone refused a request: an NBD reply cannot carry the reason.
fn tell_refusal(front: &DriveServer, has_told: &Cell<bool>) {
    if has_told.get() || front.facts().zones.is_none() {
        return;
    }
    if let Some(reason) = front.with(|_, statistics| statistics.first_zone_refusal.clone()) {
        has_told.set(true);
        message!("a request was against the rules of zones and got EIO: {reason}; later ones are counted (--stats)");
    }
}

/// Prints the rules that the drive imposes on its host and a conventional drive does not.
fn tell_rules(facts: &Facts, door: &Door) {
    if let (Some(zones), Door::Nbd { .. }) = (&facts.zones, door) {
        message!(
            "this drive has zones of {}: a sequential zone takes writes at its pointer only and answers others with EIO; TRIM \
             resets each sequential zone that it covers whole and ignores parts of zones; WRITE_ZEROES obeys the pointer; \
             --stats lists the zones",
            human::bytes(zones.zone_sectors.0 * u64::from(facts.sector_bytes)),
        );
    }
    if facts.leaves_damage_to_host {
        message!(
            "this drive takes writes anywhere, and each destroys sectors after it on the disk: destroyed sectors, and \
             those never written, read as EIO until they are written"
        );
    }
}

/// Starts the threads that publish the drive's figures, and returns their handles.
fn watchers(
    args: &ServeArgs,
    limits: PageLimits,
    observed: &Observed,
    quiet: bool,
) -> Result<Vec<JoinHandle<()>>, Failure> {
    let stop: http::Stop = Arc::new(interrupt::requested);
    let observed: Arc<dyn http::Shown> = Arc::new(observed.clone());
    let mut threads = Vec::new();
    if let Some(address) = &args.window {
        let (shown, thread) = http::start(address, &args.limits.http_host, limits, observed.clone(), stop.clone())
            .map_err(|error| cannot_listen(address, "--window", "an address such as 127.0.0.1:8080", &error))?;
        if !quiet || chooses_port(address) {
            message!("the drive at work: http://{shown}/");
        }
        threads.push(thread);
    }
    if let Some(path) = &args.stats {
        let thread = http::start_socket(path, observed, stop)
            .map_err(|error| cannot_listen(path.display(), "--stats", "another path", &error))?;
        threads.push(thread);
    }
    Ok(threads)
}

fn open(args: &ServeArgs) -> Result<EmulatedDrive, Failure> {
    if let Some(words) = &args.drive {
        return drives::emulated(words);
    }
    let image: &Path = args.image.as_deref().expect("the parser demands an image or a drive");
    if args.read_only {
        return Ok(EmulatedDrive::open_file_to_look(image)?);
    }
    Ok(EmulatedDrive::open_file(image, args.sync == "barrier")?)
}

fn tls(args: &ServeArgs) -> Result<Option<TlsServer>, Failure> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    TlsServer::load(certificate, key, args.tls_client_ca.as_deref()).map(Some).map_err(|error| {
        Failure::failed(format!("cannot use the certificates for TLS: {error}"))
            .or_try("--tls-cert and --tls-key with files in PEM that can be read")
    })
}

/// Prints the statistics of the served requests on standard error.
fn report(statistics: &imbrex_serve::statistics::Statistics, pace: Pace) {
    if statistics.kinds.iter().all(|kind| kind.requests == 0) {
        message!("no requests came");
    }
    for kind in statistics.kinds.iter().filter(|kind| kind.requests > 0) {
        let at = |share| human::duration_ns(kind.latency_ns.value_at_quantile(share));
        let counts = format!(
            "{:6} {} requests, {} errors, {}",
            kind.name,
            human::count(kind.requests),
            kind.errors,
            human::bytes(kind.bytes),
        );
        // Requests that the drive refused have no latency.
        if kind.latency_ns.is_empty() {
            message!("{counts}");
            continue;
        }
        let longest = human::duration_ns(kind.latency_ns.max());
        message!("{counts}; latency p50 {}, p99 {}, longest {longest}", at(0.5), at(0.99));
    }
    if pace != Pace::None && !statistics.lateness_ns.is_empty() {
        let at = |share| human::duration_ns(statistics.lateness_ns.value_at_quantile(share));
        message!("answers were late by p50 {}, p99 {}", at(0.5), at(0.99));
    }
}
