//! Controller, buffer and bus of a DiskSim disk (`disksim_disk`; reference manual §3.4.5).

use imbrex_disk::profile::{Controller, ExtraDisconnect, ImmediateReport, ReadOn, WatermarkOf};

use super::ImportError;
use super::fields::{Fields, refuse};

/// Transfer times of the bus, as a `.parv` describes it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Bus {
    /// Time to transfer one sector of 512 bytes from the drive to the host, in milliseconds, over the slowest of the
    /// bus and its controllers.
    pub read_ms: f64,
    /// Time to transfer one sector of 512 bytes from the host to the drive, in milliseconds, over the slowest of the
    /// bus and its controllers.
    pub write_ms: f64,
    /// Time to win the bus, in nanoseconds: for the command, and each time the drive takes the bus again.
    pub arbitration_ns: u64,
}

/// Parameters that do not matter for a single drive that serves one request after the other, and the reason.
const WITHOUT_MEANING: &[(&str, &str)] = &[
    ("Print stats", "what DiskSim prints"),
    ("Avg sectors per cylinder", "an estimate for schedulers outside the drive"),
    ("Scheduler", "the drive's queue is [host] schedule; measured requests came one by one"),
    ("Calc sector by sector", "DiskSim's own shortcut"),
    ("Max queue length", "measured requests came one by one; [host] queue stays at its default"),
    ("Preseeking level", "makes no difference to one request at a time"),
    ("Allow sneaky partial read hits", "a read found in part while the arm is busy waits for it"),
    ("Allow sneaky intermediate read hits", "needs several requests at once"),
    ("Allow write prebuffering", "needs several requests at once"),
    ("Disconnect write if seek", "the bus is nobody else's"),
    ("Read directly to buffer", "a sector counts as read when it has passed"),
    ("Maximum number of write segments", "one stream of writes at a time is on its way to the medium"),
    ("Combine seq writes", "a stream of writes always goes on in its segment"),
    ("Write hit stop prefetch", "every write ends reading on"),
];

/// Reads the block.
pub(super) fn read(fields: &Fields<'_>, bus: Bus, notes: &mut Vec<String>) -> Result<Controller, ImportError> {
    let scale = fields.number("Time scale for overheads")?.unwrap_or(1.0);
    let scaled = |name: &str| -> Result<u64, ImportError> { Ok((fields.ns(name)? as f64 * scale).round() as u64) };
    let bulk_ms = fields.number("Bulk sector transfer time")?.unwrap_or(0.0);
    let sector_ns = |bus_ms: f64| (bus_ms.max(bulk_ms).max(0.0) * 1e6).round() as u64;
    let extra = fields.is_on("Extra write disconnect")?;
    let extra_disconnect = ExtraDisconnect {
        command_ns: scaled("Extradisc command overhead")?,
        disconnect_ns: scaled("Extradisc disconnect overhead")?,
        pause_ns: fields.ns("Extradisc inter-disconnect delay")?,
        second_disconnect_ns: scaled("Extradisc 2nd disconnect overhead")?,
        seek_delay_ns: scaled("Extradisc seek delta")?,
        start_sectors: 10,
        long_start_sectors: 15,
        long_from_sectors: 45,
    };
    if extra {
        notes.push(
            "with 'Extra write disconnect' a write begins once 10 sectors have come, 15 where it has 45 or more: so \
             DiskSim 4.0 does, though its manual does not say it"
                .into(),
        );
    }
    let water = |name: &str| -> Result<f64, ImportError> { Ok(fields.number(name)?.unwrap_or(0.0).clamp(0.0, 1.0)) };
    let own_write_segment = fields.is_on("Use separate write segment")?;
    let segments = fields.whole("Number of buffer segments")?.unwrap_or(1).min(4096) as u32;
    fields.note_unused(WITHOUT_MEANING, notes);
    let ahead = ReadAhead::read(fields, notes)?;
    let keeps_sectors_before = fields.is_on("Read any free blocks")?;
    Ok(Controller {
        command_ns: bus.arbitration_ns + scaled("Per-request overhead time")?,
        read_hit_after_read_ns: scaled("Read hit over. after read")?,
        read_hit_after_write_ns: scaled("Read hit over. after write")?,
        read_miss_after_read_ns: scaled("Read miss over. after read")?,
        read_miss_after_write_ns: scaled("Read miss over. after write")?,
        write_hit_after_read_ns: scaled("Write hit over. after read")?,
        write_hit_after_write_ns: scaled("Write hit over. after write")?,
        write_miss_after_read_ns: scaled("Write miss over. after read")?,
        write_miss_after_write_ns: scaled("Write miss over. after write")?,
        read_complete_ns: scaled("Read completion overhead")?,
        write_complete_ns: scaled("Write completion overhead")?,
        data_prepare_ns: scaled("Data preparation overhead")?,
        reselect_ns: bus.arbitration_ns + scaled("First reselect overhead")?,
        reselect_again_ns: bus.arbitration_ns + scaled("Other reselect overhead")?,
        read_disconnect_after_read_ns: scaled("Read disconnect afterread")?,
        read_disconnect_after_write_ns: scaled("Read disconnect afterwrite")?,
        write_disconnect_ns: scaled("Write disconnect overhead")?,
        extra_disconnect: extra.then_some(extra_disconnect),
        write_seek_min_ns: fields.ns("Minimum seek delay")?,
        bus_read_sector_ns: sector_ns(bus.read_ms),
        bus_write_sector_ns: sector_ns(bus.write_ms),
        never_disconnects: fields.is_on("Never disconnect")?,
        holds_bus_reading: fields.is_on("Hold bus entire read xfer")?,
        holds_bus_writing: fields.is_on("Hold bus entire write xfer")?,
        read_watermark: water("High (read) water mark")?,
        write_watermark: water("Low (write) water mark")?,
        watermark_of: if fields.is_on("Set watermark by reqsize")? {
            WatermarkOf::Request
        } else {
            WatermarkOf::Segment
        },
        segments: segments.max(if own_write_segment { 2 } else { 1 }),
        segment_sectors: fields.whole("Segment size (in blks)")?.unwrap_or(1).clamp(1, u32::MAX as u64) as u32,
        own_write_segment,
        caches: fields.is_on("Enable caching in buffer")?,
        read_on: ahead.until,
        read_on_min_sectors: ahead.min_sectors,
        read_on_max_sectors: ahead.max_sectors,
        read_on_over_requested: ahead.over_requested != 0,
        drops_requested: ahead.over_requested < 0,
        keeps_sectors_before,
        read_on_after_hit: fields.is_on("Read-ahead on idle hit")?,
        hits_sector_being_read: fields.is_on("Allow almost read hits")?,
        hits_while_busy: fields.is_on("Allow sneaky full read hits")?,
        hits_written: fields.is_on("Allow read hits on write data")?,
        partial_hit_at_once: fields.is_on("Immed transfer partial hit")?,
        immediate_report: choice(
            fields,
            "Fast write level",
            &[ImmediateReport::Never, ImmediateReport::Stream, ImmediateReport::Mixed],
        )?,
        stops_in_sector: fields.is_on("Stop prefetch in sector")?,
        // DiskSim begins with any sector of the track if it keeps those before the requested ones.
        reads_on_arrival: fields.is_on("Immediate buffer read")? || keeps_sectors_before,
        writes_on_arrival: fields.is_on("Immediate buffer write")?,
    })
}

/// Read-ahead, with the values that DiskSim 4.0 uses for those of the file.
struct ReadAhead {
    until: ReadOn,
    min_sectors: u32,
    max_sectors: u32,
    /// `Read-ahead over requested`: 1, 0, or -1 if the requested sectors leave the segment once they are sent.
    over_requested: i8,
}

impl ReadAhead {
    fn read(fields: &Fields<'_>, notes: &mut Vec<String>) -> Result<ReadAhead, ImportError> {
        let until = choice(
            fields,
            "Buffer continuous read",
            &[ReadOn::None, ReadOn::Track, ReadOn::Cylinder, ReadOn::Segment, ReadOn::NextTrack],
        )?;
        let over_requested = match fields.number("Read-ahead over requested")?.unwrap_or(0.0) {
            -1.0 => -1,
            0.0 => 0,
            1.0 => 1,
            other => {
                let parameter = fields.parameter("Read-ahead over requested").expect("a number was read of it");
                return Err(refuse(parameter, &format!("{other} is none of -1, 0 and 1")));
            }
        };
        let (least, most) =
            (sectors(fields, "Minimum read-ahead (blks)")?, sectors(fields, "Maximum read-ahead (blks)")?);
        let (min_sectors, max_sectors) = match until {
            ReadOn::None => (0, 0),
            ReadOn::NextTrack => (least, 0),
            _ => (least, most.max(least)),
        };
        if until == ReadOn::None && least.max(most) > 0 {
            notes.push("the limits of read-ahead are not used: 'Buffer continuous read' 0 is none".into());
        }
        if until == ReadOn::NextTrack && most > 0 {
            notes.push(
                "'Maximum read-ahead (blks)' is not used: with 'Buffer continuous read' 4, DiskSim 4.0 reads on to the \
                 end of a track whatever the maximum, though its manual says otherwise"
                    .into(),
            );
        }
        Ok(ReadAhead { until, min_sectors, max_sectors, over_requested })
    }
}

fn sectors(fields: &Fields<'_>, name: &str) -> Result<u32, ImportError> {
    Ok(fields.whole(name)?.unwrap_or(0).min(u32::MAX as u64) as u32)
}

fn choice<T: Copy>(fields: &Fields<'_>, name: &str, meanings: &[T]) -> Result<T, ImportError> {
    let number = fields.whole(name)?.unwrap_or(0);
    meanings.get(number as usize).copied().ok_or_else(|| {
        let parameter = fields.parameter(name).expect("a number was read of it");
        refuse(parameter, &format!("{number} is none of 0 to {}", meanings.len() - 1))
    })
}
