//! Rows of a stripe group: appending whole rows, reading, and reconstructing rows with missing columns.

use futures_util::future::join_all;

use super::parity::{Columns, column_from, data_from, parity_of};
use super::{Array, Group, LateWrite};
use crate::device::{BLOCK_BYTES, Device, DeviceFault};
use crate::executor::{Cause, Local};
use crate::format::change::{GroupLayout, ZoneOf};
use crate::journal::checksums;

/// Outcome of reading a column.
type Read = Result<Vec<u8>, DeviceFault>;

/// Run of rows of a group. The blocks from `first` to before `end` are requested; both are counted from the first row.
struct Rows {
    layout: GroupLayout,
    row: u64,
    rows: u64,
    first: u64,
    end: u64,
}

impl Rows {
    fn width(&self) -> u64 {
        u64::from(self.layout.width)
    }

    /// Returns the rows in which column `column` has requested blocks: the first, counted from the first row, and their
    /// number.
    fn rows_of(&self, column: u64) -> (u64, u64) {
        let width = self.width();
        let skipped = u64::from(column < self.first);
        let end = (self.end + width - 1 - column) / width;
        (skipped, end.saturating_sub(skipped))
    }

    /// Returns the requested blocks out of the bytes of whole rows.
    fn cut(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.truncate(self.end as usize * BLOCK_BYTES);
        bytes.drain(..self.first as usize * BLOCK_BYTES);
        bytes
    }
}

/// Write of one column to its zone.
struct ColumnWrite {
    at: ZoneOf,
    device: Device,
    start: u64,
    bytes: Vec<u8>,
    cause: Cause,
}

impl ColumnWrite {
    async fn perform(self) -> Result<(), DeviceFault> {
        let executor = self.device.executor().clone();
        executor.for_cause(self.cause, self.device.write(self.start, self.bytes)).await
    }
}

impl Array {
    /// Returns the rows that hold `blocks` from `block` on.
    ///
    /// # Errors
    /// The blocks are in no stripe group, or exceed it.
    fn locate(&self, block: u64, blocks: u64) -> Result<Rows, DeviceFault> {
        let stride = self.0.shape.stride();
        let (group, place) = ((block / stride) as u32, block % stride);
        let groups = self.0.groups.borrow();
        let found = groups.get(&group);
        let found = found.ok_or_else(|| DeviceFault::new(format!("block {block} is in no stripe group")))?;
        let width = u64::from(found.layout.width);
        if place + blocks > width * self.0.shape.rows() {
            return Err(DeviceFault::new(format!("blocks {block} to {} leave their stripe group", block + blocks)));
        }
        let (row, first) = (place / width, place % width);
        let end = first + blocks;
        Ok(Rows { layout: found.layout.clone(), row, rows: end.div_ceil(width), first, end })
    }

    /// Reads `blocks` blocks of 4 KiB from block `block` on. Unreadable columns are reconstructed from the others.
    /// Checksums are not verified; that is left to the caller.
    ///
    /// # Errors
    /// The blocks are in no stripe group or exceed theirs, or fewer drives than the group has data columns can be read.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        let rows = self.locate(block, blocks)?;
        let wanted: Vec<(usize, u64, u64)> = (0..rows.width())
            .map(|column| (column as usize, rows.rows_of(column)))
            .filter(|(_, (_, count))| *count > 0)
            .map(|(column, (skipped, count))| (column, skipped, count))
            .collect();
        let layout = &rows.layout;
        let is_there = |&(column, skipped, count): &(usize, u64, u64)| {
            self.reader_of(layout.members[column], rows.row + skipped, count).is_some()
        };
        if !wanted.iter().all(is_there) {
            return Ok(rows.cut(self.read_degraded(&rows).await?));
        }
        let reads = wanted.iter().map(|&(column, skipped, count)| {
            Box::pin(self.read_column(layout, column, rows.row + skipped, count)) as Local<'_, Read>
        });
        let read = join_all(reads).await;
        let width = rows.width() as usize;
        let mut bytes = vec![0; rows.rows as usize * width * BLOCK_BYTES];
        let mut is_whole = true;
        for ((column, skipped, _), outcome) in wanted.into_iter().zip(read) {
            match outcome {
                Ok(column_bytes) => spread(&column_bytes, column, skipped as usize, width, &mut bytes),
                Err(_) => is_whole = false,
            }
        }
        if !is_whole {
            bytes = self.read_degraded(&rows).await?;
        }
        Ok(rows.cut(bytes))
    }

    /// Returns all data blocks of `rows`, with unreadable columns reconstructed. It reads all rows at once if enough
    /// columns are readable in all of them, and otherwise row by row.
    async fn read_degraded(&self, rows: &Rows) -> Result<Vec<u8>, DeviceFault> {
        self.count(|counters| counters.degraded_rows += rows.rows);
        if let Ok(bytes) = self.make_rows(&rows.layout, rows.row, rows.rows).await {
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        for row in rows.row..rows.row + rows.rows {
            bytes.extend(self.make_rows(&rows.layout, row, 1).await?);
        }
        Ok(bytes)
    }

    async fn make_rows(&self, layout: &GroupLayout, row: u64, rows: u64) -> Result<Vec<u8>, DeviceFault> {
        let (there, fault) = self.read_columns(layout, row, rows).await;
        let width = usize::from(layout.width);
        let Some(data) = data_from(width, layout.parity(), &there) else {
            let why = fault.map_or(String::new(), |fault| format!(": {fault}"));
            let (left, all) = (there.len(), layout.members.len());
            return Err(DeviceFault::new(format!("{left} of {all} drives can be read, and {width} are needed{why}")));
        };
        let mut bytes = vec![0; rows as usize * width * BLOCK_BYTES];
        for (column, column_bytes) in data.iter().enumerate() {
            spread(column_bytes, column, 0, width, &mut bytes);
        }
        Ok(bytes)
    }

    /// Returns every readable column of these rows, and the fault of an unreadable one.
    pub(super) async fn read_columns(
        &self,
        layout: &GroupLayout,
        row: u64,
        rows: u64,
    ) -> (Columns, Option<DeviceFault>) {
        let reads = (0..layout.members.len())
            .map(|column| Box::pin(self.read_column(layout, column, row, rows)) as Local<'_, Read>);
        let (mut there, mut fault) = (Columns::new(), None);
        for (column, outcome) in join_all(reads).await.into_iter().enumerate() {
            match outcome {
                Ok(bytes) => drop(there.insert(column, bytes)),
                Err(error) => fault = Some(error),
            }
        }
        (there, fault)
    }

    async fn read_column(
        &self,
        layout: &GroupLayout,
        column: usize,
        row: u64,
        rows: u64,
    ) -> Result<Vec<u8>, DeviceFault> {
        let at = layout.members[column];
        let Some(device) = self.reader_of(at, row, rows) else {
            let (drive, zone) = (at.drive, at.zone);
            return Err(DeviceFault::new(format!("row {row} of zone {zone} of drive {drive} is not there")));
        };
        device.read(self.start_of(at) + 1 + row, rows).await
    }

    /// Returns whether the columns of a row agree with its parity.
    ///
    /// # Errors
    /// A column cannot be read.
    pub(super) async fn agrees_with_parity(&self, layout: &GroupLayout, row: u64) -> Result<bool, DeviceFault> {
        let (there, fault) = self.read_columns(layout, row, 1).await;
        if let Some(fault) = fault {
            return Err(fault);
        }
        let data: Vec<&[u8]> = there.range(..usize::from(layout.width)).map(|(_, bytes)| bytes.as_slice()).collect();
        let made = parity_of(&data, layout.parity());
        Ok(there.range(usize::from(layout.width)..).map(|(_, bytes)| bytes).eq(&made))
    }

    /// Returns the device of zone `at`, if it can be read and the zone has these rows.
    fn reader_of(&self, at: ZoneOf, row: u64, rows: u64) -> Option<Device> {
        let drives = self.0.drives.borrow();
        let zone = drives.zone(at).filter(|zone| !zone.is_offline);
        let reaches = zone.is_some_and(|zone| 1 + row + rows <= zone.written);
        drives.reader(at.drive).filter(|_| reaches)
    }

    /// Appends `bytes` to a stripe group at block `block`, its write pointer. The length of `bytes` must be a multiple
    /// of 4 KiB; the last row is filled with zeros. The first poll submits the writes to all drives, so the next append
    /// may follow at once. If a drive fails to write, the group is closed to appends. The caller must not use the
    /// blocks of appends that were in flight behind a failed one.
    ///
    /// # Errors
    /// The group does not exist or is closed to appends, one of its drives cannot be written, or a write fails. If
    /// `block` is not the write pointer, or the rows exceed the group, the fault has `breaks_rules` set.
    ///
    /// # Panics
    /// The number of rows of the group is still recorded in the metadata ([`Array::trust_no_more`]).
    pub async fn write(&self, block: u64, bytes: Vec<u8>) -> Result<(), DeviceFault> {
        let group = (block / self.0.shape.stride()) as u32;
        let columns = self.begin_append(group, block, bytes)?;
        let columns = self.put_off_parity(group, columns);
        let places: Vec<ZoneOf> = columns.iter().map(|column| column.at).collect();
        let writes = columns.into_iter().map(|column| Box::pin(column.perform()) as Local<'_, Result<(), DeviceFault>>);
        let outcomes = join_all(writes).await;
        let mut first_fault = Ok(());
        for (at, outcome) in places.into_iter().zip(outcomes) {
            if let Err(fault) = outcome {
                // Seals before anything is awaited: no write may be submitted behind one that failed.
                self.seal(group);
                self.look_at(at).await;
                first_fault = Err(fault);
            }
        }
        if let (Err(_), Some(layout)) = (&first_fault, self.layout(group)) {
            self.finish_zones(&layout).await;
        }
        first_fault
    }

    pub(super) fn seal(&self, group: u32) {
        if let Some(group) = self.0.groups.borrow_mut().get_mut(&group) {
            group.is_sealed = true;
        }
    }

    /// Returns the write for each zone, and moves the write pointer of the group behind these rows.
    fn begin_append(&self, group: u32, block: u64, mut bytes: Vec<u8>) -> Result<Vec<ColumnWrite>, DeviceFault> {
        let stride = self.0.shape.stride();
        let mut groups = self.0.groups.borrow_mut();
        let found = groups.get_mut(&group);
        let found = found.ok_or_else(|| DeviceFault::new(format!("block {block} is in no stripe group")))?;
        if found.is_sealed {
            return Err(DeviceFault::new(format!("stripe group {group} is closed to writes")));
        }
        assert!(!found.is_trusted, "stripe group {group}: the metadata still have its rows: invariant 2 of core::fill");
        let width = u64::from(found.layout.width);
        let pointer = u64::from(group) * stride + found.rows * width;
        let row_bytes = width as usize * BLOCK_BYTES;
        let filled = bytes.len().next_multiple_of(row_bytes);
        let rows = (filled / row_bytes) as u64;
        if block != pointer || found.rows + rows > self.0.shape.rows() {
            let reason = format!("stripe group {group}: a write of {rows} rows at {block}, its pointer at {pointer}");
            return Err(DeviceFault { reason, breaks_rules: true });
        }
        let padding_blocks = ((filled - bytes.len()) / BLOCK_BYTES) as u64;
        bytes.resize(filled, 0);
        let row = found.rows;
        found.rows += rows;
        let with_headers = !std::mem::replace(&mut found.has_headers, true);
        let columns = columns_of(&found.layout, &bytes);
        // The header of a parity zone is part of the same write.
        let parity_blocks = (rows + u64::from(with_headers)) * found.layout.parity() as u64;
        self.count(|counters| {
            counters.padding_blocks += padding_blocks;
            counters.parity_blocks += parity_blocks;
        });
        let mut writes = self.address(found, row, rows, columns)?;
        for (column, write) in writes.iter_mut().enumerate().filter(|_| with_headers) {
            let header = self.header_of(group, &found.layout, column);
            (write.start, write.bytes) = (self.start_of(write.at), [header, std::mem::take(&mut write.bytes)].concat());
        }
        Ok(writes)
    }

    fn address(
        &self,
        group: &Group,
        row: u64,
        rows: u64,
        columns: Vec<Vec<u8>>,
    ) -> Result<Vec<ColumnWrite>, DeviceFault> {
        let mut drives = self.0.drives.borrow_mut();
        let mut writes = Vec::with_capacity(columns.len());
        for (column, (&at, bytes)) in group.layout.members.iter().zip(columns).enumerate() {
            let device = drives.device(at.drive);
            let device = device.ok_or_else(|| DeviceFault::new(format!("drive {} is not there", at.drive)))?;
            let cause = if column < usize::from(group.layout.width) { Cause::Data } else { Cause::Parity };
            writes.push(ColumnWrite { at, device, start: self.start_of(at) + 1 + row, bytes, cause });
        }
        for at in &group.layout.members {
            if let Some(zone) = drives.zone_mut(*at) {
                zone.written = 1 + row + rows;
            }
        }
        Ok(writes)
    }

    /// Reconstructs block `block` from the other columns of its row, such that its CRC-32C is `sum`. Other columns may
    /// be damaged too, so every combination of as many columns as the group has data columns is tried. Returns `None`
    /// if no combination gives `sum`, too few columns can be read, or the block is in no stripe group.
    pub async fn recover(&self, block: u64, sum: u32) -> Option<Vec<u8>> {
        self.recover_as(block, |bytes| checksums::of_block(bytes) == sum).await
    }

    /// Reconstructs block `block`, of 4 KiB, from the other columns of its row. Tries every combination of as many
    /// columns as the group has data columns, and returns the first reconstruction for which `is_right` returns `true`.
    /// Returns `None` if there is none, too few columns can be read, or the block is in no stripe group.
    pub async fn recover_as(&self, block: u64, is_right: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let rows = self.locate(block, 1).ok()?;
        let (mut there, _) = self.read_columns(&rows.layout, rows.row, 1).await;
        let (width, parity, wanted) = (usize::from(rows.layout.width), rows.layout.parity(), rows.first as usize);
        there.remove(&wanted);
        let numbers: Vec<usize> = there.keys().copied().collect();
        for chosen in choices(&numbers, width) {
            let some: Columns = chosen.iter().map(|column| (*column, there[column].clone())).collect();
            let made = column_from(width, parity, &some, wanted).filter(|bytes| is_right(bytes));
            if made.is_some() {
                self.count(|counters| counters.recovered_blocks += 1);
                return made;
            }
        }
        None
    }

    /// Returns how many rows (one block of each zone) of stripe group `group`, from row 0 on, can be read: each of
    /// these rows is in at least as many readable zones as the group has data columns. Returns 0 if there is no such
    /// group.
    pub fn rows_readable(&self, group: u32) -> u64 {
        let Some(layout) = self.layout(group) else { return 0 };
        let drives = self.0.drives.borrow();
        let rows = |at: &ZoneOf| {
            drives.reader(at.drive)?;
            let zone = drives.zone(*at).filter(|zone| !zone.is_offline)?;
            Some(zone.written.saturating_sub(1).min(self.0.shape.rows()))
        };
        let mut reached: Vec<u64> = layout.members.iter().filter_map(rows).collect();
        reached.sort_unstable();
        reached.iter().rev().nth(usize::from(layout.width) - 1).copied().unwrap_or(0)
    }

    /// Makes the array write parity only at the next flush: a fault that tests of power cuts must detect.
    pub(crate) fn make_parity_late(&self) {
        *self.0.late_parity.borrow_mut() = Some(Vec::new());
    }

    fn put_off_parity(&self, group: u32, mut columns: Vec<ColumnWrite>) -> Vec<ColumnWrite> {
        let mut late = self.0.late_parity.borrow_mut();
        let Some(late) = late.as_mut() else { return columns };
        let width = self.0.groups.borrow().get(&group).map_or(0, |group| usize::from(group.layout.width));
        let put_off = columns.split_off(width.min(columns.len()));
        late.extend(put_off.into_iter().map(|column| (column.at, column.start, column.bytes)));
        columns
    }

    /// Writes the parity that the injected fault held back, after a flush of the data.
    pub(super) async fn write_late(&self) -> Result<(), DeviceFault> {
        let late: Vec<LateWrite> = self.0.late_parity.borrow_mut().as_mut().map(std::mem::take).unwrap_or_default();
        if late.is_empty() {
            return Ok(());
        }
        let there: Vec<Device> = {
            let drives = self.0.drives.borrow();
            (0..drives.all().len() as u8).filter_map(|number| drives.device(number)).collect()
        };
        for device in there {
            device.flush().await?;
        }
        for (at, start, bytes) in late {
            let device = self.0.drives.borrow().device(at.drive);
            if let Some(device) = device {
                device.write(start, bytes).await?;
            }
        }
        Ok(())
    }
}

/// Copies the blocks of a column to their positions in rows of `width`, from row `row` on.
fn spread(column_bytes: &[u8], column: usize, row: usize, width: usize, into: &mut [u8]) {
    for (number, block) in column_bytes.chunks(BLOCK_BYTES).enumerate() {
        let at = ((row + number) * width + column) * BLOCK_BYTES;
        into[at..at + BLOCK_BYTES].copy_from_slice(block);
    }
}

/// Returns the columns of whole rows, data and parity.
pub(super) fn columns_of(layout: &GroupLayout, bytes: &[u8]) -> Vec<Vec<u8>> {
    let width = usize::from(layout.width);
    let blocks: Vec<&[u8]> = bytes.chunks(BLOCK_BYTES).collect();
    let column = |column: usize| -> Vec<u8> {
        blocks.iter().skip(column).step_by(width).flat_map(|block| block.iter().copied()).collect()
    };
    let mut columns: Vec<Vec<u8>> = (0..width).map(column).collect();
    let data: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
    let parity = parity_of(&data, layout.parity());
    columns.extend(parity);
    columns
}

/// Returns every combination of `count` out of `numbers`.
fn choices(numbers: &[usize], count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let Some((first, rest)) = numbers.split_first() else { return Vec::new() };
    let with = choices(rest, count - 1).into_iter().map(|mut choice| {
        choice.insert(0, *first);
        choice
    });
    let with: Vec<Vec<usize>> = with.collect();
    with.into_iter().chain(choices(rest, count)).collect()
}
