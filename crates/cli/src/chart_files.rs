//! `--charts`: charts as SVG and PNG, as wide as a column of a paper.

use std::path::Path;

use imbrex::Failure;
use imbrex::chart::{COLUMN_MM, Chart};
use imbrex::files::{check_output, replace};
use imbrex::report::figure::{Drawing, Figure, file_name};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// Resolution of the PNG files in dots per inch, the usual demand of publishers for line art in colour.
const DOTS_PER_INCH: f64 = 600.0;

/// Families of fonts without serifs, the preferred one first.
const FAMILIES: [&str; 6] = ["Helvetica", "Arial", "Liberation Sans", "Noto Sans", "Open Sans", "DejaVu Sans"];

/// Refuses a path for the folder at which something else stands.
pub(crate) fn check(folder: Option<&Path>) -> Result<(), Failure> {
    match folder {
        Some(folder) if folder.exists() && !folder.is_dir() => {
            Err(Failure::failed(format!("--charts {}: a file stands in the way", folder.display()))
                .or_try("another name for the folder"))
        }
        _ => Ok(()),
    }
}

/// Writes the drawings of `figures` that a reader sees first into `folder`. See [`save`].
pub(crate) fn save_figures(folder: &Path, figures: &[Figure], quiet: bool) -> Result<(), Failure> {
    save(folder, &figures.iter().flat_map(Figure::named).collect::<Vec<_>>(), quiet)
}

/// Writes `charts` into `folder`, under their ids. See [`save`].
pub(crate) fn save_charts(folder: &Path, charts: Vec<Chart>, quiet: bool) -> Result<(), Failure> {
    let drawings: Vec<_> = charts.into_iter().map(|chart| (file_name(&chart.id), Drawing::Chart(chart))).collect();
    save(folder, &drawings.iter().map(|(name, drawing)| (name.clone(), drawing)).collect::<Vec<_>>(), quiet)
}

/// Writes each drawing into `folder` as `NAME.svg` and `NAME.png`, and says so unless `quiet`. Without a font no PNG file is
/// written, and a message says so.
fn save(folder: &Path, drawings: &[(String, &Drawing)], quiet: bool) -> Result<(), Failure> {
    let failed = |what: &dyn std::fmt::Display| Failure::failed(format!("--charts {}: {what}", folder.display()));
    std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let options = options();
    let has_fonts = !options.fontdb.is_empty();
    for (name, drawing) in drawings {
        let svg = drawing.column();
        let mut files = vec![(folder.join(format!("{name}.svg")), svg.as_bytes().to_vec())];
        if has_fonts {
            files.push((folder.join(format!("{name}.png")), png(&svg, &options).map_err(|error| failed(&error))?));
        }
        for (path, bytes) in files {
            check_output(&path, &[]).map_err(|error| failed(&error))?;
            replace(&path, &bytes)?;
        }
    }
    if !has_fonts {
        message!(
            "imbrex: no PNG files were written: this machine has no fonts, such as those of the package fonts-dejavu-core"
        );
    }
    if !quiet {
        let count = drawings.len();
        message!("imbrex: {count} chart{} in {}", if count == 1 { "" } else { "s" }, folder.display());
    }
    Ok(())
}

fn options() -> Options<'static> {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    let has = |family: &str| fonts.faces().any(|face| face.families.iter().any(|(name, _)| name == family));
    let family = FAMILIES.into_iter().find(|family| has(family)).map(str::to_string);
    let family = family.or_else(|| fonts.faces().next()?.families.first().map(|(name, _)| name.clone()));
    let mut options = Options::default();
    if let Some(family) = family {
        fonts.set_sans_serif_family(&family);
        options.font_family = family;
    }
    options.fontdb = fonts.into();
    options
}

/// Draws `svg` with [`DOTS_PER_INCH`].
fn png(svg: &str, options: &Options<'_>) -> Result<Vec<u8>, String> {
    let tree = Tree::from_str(svg, options).map_err(|error| error.to_string())?;
    let width = (COLUMN_MM / 25.4 * DOTS_PER_INCH).round();
    let scale = width as f32 / tree.size().width();
    let height = (tree.size().height() * scale).round();
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or("the drawing has no size")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
