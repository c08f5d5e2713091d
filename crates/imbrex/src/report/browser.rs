//! Goal: the page works in a real browser without a network. Method: headless Chromium opens the file. The test
//! compares the document after the scripts ran, the console and the network log with the expected values. Where
//! Chromium is not installed, the tests print that and pass. Two faulty pages prove that the console and the network
//! log would show errors.

use imbrex_testkit::browser::{assert_charts_hold_the_data, between, chromium, visit};

use super::html;
use super::sweep::short_names;
use crate::sample;

#[test]
fn the_page_renders_with_its_data_in_light_and_dark_and_fetches_nothing() {
    let Some(browser) = chromium() else { return };
    let (summary, series) = sample::run(6);
    let page = html(&summary, &series, None);
    for scheme in ["--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"] {
        let visit = visit(browser, &page, &[scheme]);
        assert_eq!(visit.console, Vec::<String>::new(), "the console is silent");
        assert_eq!(visit.fetched, Vec::<String>::new(), "nothing is fetched");
        assert_charts_hold_the_data(&visit.document, 7);
        let results = serde_json::to_value(&summary).expect("plain values");
        let cells: Vec<&str> = visit.document.split("data-at=\"").skip(1).collect();
        assert!(cells.len() > 100, "{} cells", cells.len());
        for cell in cells {
            let at = cell.split('"').next().expect("a place");
            let value = between(cell, "data-value=\"", "\"").expect("a value");
            assert_eq!(results.pointer(at).map(serde_json::Value::to_string).as_deref(), Some(value), "{at}");
        }
    }
}

#[test]
fn the_console_and_the_log_would_tell() {
    let Some(browser) = chromium() else { return };
    let offence = "<html><img src=\"http://127.0.0.1:9/canary.png\"><script>console.error('canary')</script></html>";
    let found = visit(browser, offence, &[]);
    assert!(found.console.iter().any(|line| line.contains("canary")), "{:?}", found.console);
    assert!(found.fetched.iter().any(|url| url.contains("canary.png")), "{:?}", found.fetched);
    let (summary, series) = sample::run(1);
    // The page's own policy blocks injected fetches.
    let tampered = html(&summary, &series, None).replace("<main>", "<main><img src=\"http://127.0.0.1:9/canary.png\">");
    let found = visit(browser, &tampered, &[]);
    assert!(found.fetched.is_empty(), "{:?}", found.fetched);
    assert!(found.console.iter().any(|line| line.contains("Content Security Policy")), "{:?}", found.console);
}

#[test]
fn a_hidden_drive_is_hidden_in_every_chart() {
    let Some(browser) = chromium() else { return };
    let (summary, series) = sample::run(3);
    // A script of the test clicks the button of the second drive. The policy allows the script because it is inside the page.
    let click = "<script>document.querySelector('.legend button[data-series=\"1\"]').click()</script></body>";
    let page = html(&summary, &series, None).replace("</body>", click);
    let document = visit(browser, &page, &[]).document;
    // The series of a map are kinds of work; the button hides the map as a whole.
    let charts: String = document.split("<svg ").filter(|svg| !svg.contains("data-parts")).collect();
    let classes = |index: usize| -> Vec<bool> {
        let marker = format!("data-series=\"{index}\" data-name=");
        let tags = charts.split("<path ").filter(|tag| tag.contains(&marker));
        tags.map(|tag| tag.starts_with("class=\"series hidden\"")).collect()
    };
    assert!(document.contains("class=\"cell hidden\" data-drive=\"1\""));
    assert!(classes(1).len() >= 7 && classes(1).iter().all(|hidden| *hidden));
    assert!(classes(0).iter().all(|hidden| !hidden));
}

/// Opens the page of `count` drives, with a script that runs at its end. Returns the script's result.
fn script(browser: &str, count: usize, script: &str) -> String {
    let (summary, series) = sample::run(count);
    let page = html(&summary, &series, None)
        .replace("</body>", &format!("<script>document.title=(function(){{{script}}})()</script></body>"));
    let visit = visit(browser, &page, &["--window-size=1300,900"]);
    assert_eq!(visit.console, Vec::<String>::new());
    between(&visit.document, "<title>", "</title>").expect("a title").to_string()
}

/// Script that sends an event of the pointer to the first chart, at a place of its frame between 0 and 1.
const POINTER: &str = "var svg=document.querySelector('#latency-all'),f=svg.dataset.plot.split(' ').map(Number);\
    function send(type,x,y,detail){var b=svg.getBoundingClientRect(),v=svg.viewBox.baseVal;\
    svg.dispatchEvent(new PointerEvent(type,{bubbles:true,detail:detail||1,\
    clientX:b.left+(f[0]+x*f[2])/v.width*b.width,clientY:b.top+(f[1]+(1-y)*f[3])/v.height*b.height}));}\
    function shown(){return [].map.call(document.querySelectorAll('#latency .pane:nth-of-type(1) .broad path.series'),\
    function(p){return p.classList.contains('hidden')?'':p.dataset.series}).join('')}";

#[test]
fn the_pointer_reads_the_values_of_all_drives_in_order() {
    let Some(browser) = chromium() else { return };
    let read = "send('pointermove',0.5,0.5);var r=svg.parentNode.querySelector('.readout');\
        return r.className+'|'+[].map.call(r.querySelectorAll('i'),function(i){return i.textContent}).join(',')+'|'+\
        r.querySelector('b').textContent";
    let found = script(browser, 4, &format!("{POINTER}{read}"));
    let parts: Vec<&str> = found.split('|').collect();
    // Half of the height of an axis with four nines is 99 %.
    let (summary, series) = sample::run(4);
    let mut expected: Vec<(u64, String)> =
        series.iter().map(|drive| drive.all.quantile_ns(0.99)).zip(short_names(&summary)).collect();
    expected.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let expected: Vec<&str> = expected.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(parts[0], "readout");
    assert_eq!(parts[1], expected.join(","), "the slowest drive is first");
    assert!(parts[2].starts_with("99"), "{found}");
}

#[test]
fn a_click_isolates_and_a_drag_zooms_and_a_double_click_resets() {
    let Some(browser) = chromium() else { return };
    let click = "var before=shown();var p=svg.querySelector('path.series[data-series=\"1\"]').getBBox();\
        var x=(p.x+p.width-f[0])/f[2]-0.001,y=1-(p.y-f[1])/f[3]-0.001;\
        send('pointermove',x,y);send('pointerdown',x,y);send('pointerup',x,y);var one=shown();\
        send('pointermove',x,y);send('pointerdown',x,y);send('pointerup',x,y);return before+'|'+one+'|'+shown()";
    let found = script(browser, 3, &format!("{POINTER}{click}"));
    let parts: Vec<&str> = found.split('|').collect();
    assert_eq!((parts[0], parts[1].len(), parts[2]), ("012", 1, "012"), "{found}");
    let drag = "var path=svg.querySelector('path.series'),d=path.getAttribute('d');\
        send('pointerdown',0.2,0.5);send('pointermove',0.4,0.5);send('pointerup',0.4,0.5);\
        var zoomed=path.getAttribute('d')!==d&&svg.classList.contains('zoomed');\
        var ticks=svg.querySelectorAll('.ticks text').length;send('dblclick',0.3,0.5);\
        return zoomed+'|'+ticks+'|'+(path.getAttribute('d')===d)";
    let found = script(browser, 3, &format!("{POINTER}{drag}"));
    let parts: Vec<&str> = found.split('|').collect();
    assert_eq!((parts[0], parts[2]), ("true", "true"), "{found}");
    assert!(parts[1].parse::<usize>().expect("a count") >= 2, "{found}");
}

#[test]
fn eight_curves_at_most_are_shown_at_first() {
    let Some(browser) = chromium() else { return };
    let found = script(browser, 10, &format!("{POINTER}return shown()"));
    assert_eq!(found.len(), 8, "{found}");
    assert!(found.starts_with('0'), "the baseline is among them: {found}");
}

#[test]
fn every_drawing_of_the_page_can_be_read_on_broad_and_narrow_screens() {
    let Some(browser) = chromium() else { return };
    for count in [2, 6, 10] {
        let (summary, series) = sample::run(count);
        let page = html(&summary, &series, None);
        for width in [2400, 1400, 500] {
            let found = imbrex_testkit::drawings::faults(browser, &page, width);
            assert!(found.is_empty(), "{count} drives, {width} pixels:\n{}", found.join("\n"));
        }
    }
}

#[test]
fn a_chart_is_saved_as_a_drawing_of_its_own() {
    let Some(browser) = chromium() else { return };
    // The script keeps the contents of the file.
    let click = "var saved='';window.Blob=function(parts){saved=parts[0]};URL.createObjectURL=function(){return '#'};\
        document.querySelector('#latency .legend button[data-series=\"1\"]').click();\
        document.querySelector('#latency .save button').click();\
        var svg=new DOMParser().parseFromString(saved,'image/svg+xml').documentElement;\
        var texts=[].map.call(svg.querySelectorAll('text'),function(t){return t.textContent});\
        return [svg.nodeName,svg.getAttribute('width'),saved.indexOf('var(')<0,saved.indexOf('#0072b2')>0,\
        texts.filter(function(t){return t==='conventional-4tb'}).length>0,texts.indexOf('interlaced-5tb+rmw')<0,\
        svg.querySelectorAll('path.series').length].join('|')";
    let found = script(browser, 3, click);
    assert_eq!(found, "svg|88mm|true|true|true|true|2", "the hidden drive is left out");
    // The picture of it is drawn, and the policy of the page allows that.
    let (summary, series) = sample::run(2);
    let wait = "<script>URL.createObjectURL=function(blob){document.title=blob.type+' '+\
        (blob.size>10000);return '#'};document.querySelectorAll('#latency .save button')[1].click()</script></body>";
    let page = html(&summary, &series, None).replace("</body>", wait);
    let visit = visit(browser, &page, &[]);
    assert_eq!(visit.console, Vec::<String>::new());
    assert_eq!(between(&visit.document, "<title>", "</title>"), Some("image/png true"));
}
