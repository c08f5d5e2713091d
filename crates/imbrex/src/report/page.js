(function () {
  'use strict';
  var data = JSON.parse(document.getElementById('data').textContent);

  // Numbers as the page writes them: three digits and a unit.
  function digits(value) {
    var size = Math.abs(value);
    if (size === 0) return '0';
    var decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : Math.min(6, 2 - Math.floor(Math.log10(size)));
    return value.toFixed(decimals).replace('-', '−');
  }
  function scaled(value, table) {
    for (var i = 0; i < table.length; i++) {
      if (Math.abs(value) * 1.0005 >= table[i][0] || i === table.length - 1) return digits(value / table[i][1]) + '\u00a0' + table[i][2];
    }
  }
  var times = [[172800e9, 86400e9, 'd'], [10800e9, 3600e9, 'h'], [300e9, 60e9, 'min'], [1e9, 1e9, 's'], [1e6, 1e6, 'ms'], [1e3, 1e3, 'µs'], [0, 1, 'ns']];
  var rates = [[1e9, 1e9, 'GB/s'], [1e6, 1e6, 'MB/s'], [1e3, 1e3, 'kB/s'], [0, 1, 'B/s']];
  var sizes = ['PiB', 'TiB', 'GiB', 'MiB', 'KiB', 'B'].map(function (name, at) {
    var bytes = Math.pow(1024, 5 - at);
    return [at === 5 ? 0 : bytes, bytes, name];
  });
  function label(value, unit) {
    if (unit === 'ns') return value === 0 ? '0' : scaled(value, times);
    if (unit === 'bytes') return scaled(value, sizes);
    if (unit === 'bytes_per_second') return scaled(value, rates);
    if (unit === 'ratio') return '×' + digits(value);
    if (unit === 'share') return (value > 0.99 ? (value * 100).toFixed(3).replace(/\.?0+$/, '') : digits(value * 100)) + '\u00a0%';
    return value % 1 === 0 && Math.abs(value) < 1e4 ? value.toString() : Math.abs(value) >= 100 ? Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f') : digits(value);
  }

  // Scales, as the drawing has them: "name low high unit". A view is the visible part of the axis, from 0 to 1.
  function scale(text, view) {
    var words = text.split(' '), low = +words[1], high = +words[2], from = view ? view[0] : 0, size = view ? view[1] - from : 1;
    var hasEnds = words[0] === 'log10-ends';
    if (hasEnds) words[0] = 'log10';
    return {
      name: words[0],
      unit: words[3],
      place: function (value) {
        var place = words[0] === 'log10' ? Math.log((hasEnds ? Math.max(value, low) : value) / low) / Math.log(high / low)
          : words[0] === 'percentile' ? Math.min(1, -Math.log10(Math.max(1 - value, 1e-15)) / high) : (value - low) / (high - low);
        return (place - from) / size;
      },
      value: function (place) {
        place = from + place * size;
        return words[0] === 'log10' ? low * Math.pow(high / low, place)
          : words[0] === 'percentile' ? 1 - Math.pow(10, -place * high) : low + place * (high - low);
      }
    };
  }

  // Round values within an axis, for its ticks.
  function ticks(axis) {
    var low = axis.value(0), high = axis.value(1), found = [], digit, power;
    if (axis.name === 'log10' && high / low > 4) {
      var digits = high / low > 100 ? [1] : [1, 2, 5];
      for (power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
        for (digit = 0; digit < digits.length; digit++) found.push(digits[digit] * Math.pow(10, power));
      }
    } else {
      var raw = (high - low) / 5, ten = Math.pow(10, Math.floor(Math.log10(raw)));
      var step = ten * [1, 2, 5, 10].filter(function (size) { return size * ten >= raw * 0.999; })[0];
      for (var value = Math.ceil(low / step) * step; value <= high; value += step) found.push(value);
    }
    return found.filter(function (value) { return value >= low && value <= high; });
  }

  // The last point whose coordinate is not above `value`; of lines the nearer one.
  function find(points, value, shape, coordinate) {
    var low = 0, high = points.length / 2;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (points[2 * middle + coordinate] <= value) low = middle + 1; else high = middle;
    }
    var at = low - 1;
    if (shape === 'steps') return at;
    if (at < 0) return 0;
    if (2 * at + 2 < points.length && points[2 * at + 2] - value < value - points[2 * at]) at++;
    return at;
  }

  function element(name, text, parent) {
    var made = document.createElement(name);
    if (text !== null) made.textContent = text;
    parent.appendChild(made);
    return made;
  }
  function drawn(name, attributes, parent) {
    var made = document.createElementNS('http://www.w3.org/2000/svg', name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    return parent.appendChild(made);
  }
  function all(parent, selector, visit) { Array.prototype.forEach.call(parent.querySelectorAll(selector), visit); }
  function round(value) { return Math.round(value * 10) / 10; }

  function live(svg) {
    var id = svg.id.replace(/-narrow$/, ''), series = data.charts[id];
    if (!series || !svg.dataset.plot) return;
    var frame = svg.dataset.plot.split(' ').map(Number), x = scale(svg.dataset.x), y = scale(svg.dataset.y);
    var scope = scopeOf(svg), hidden = hiddenIn(scope), isParts = 'parts' in svg.dataset, isShare = y.name === 'percentile', begun = null, focus = -1, zoomed = null;
    var isCurve = series.every(function (one) { return /^(line|steps|dots)$/.test(one.shape) && !one.half_widths; });
    var isScattered = series.some(function (one) { return one.shape === 'marks' || one.shape === 'dots'; });
    var guide = drawn('path', { style: 'stroke:var(--muted);stroke-width:1;fill:none;pointer-events:none' }, svg);
    var choice = drawn('rect', { y: frame[1], height: frame[3], width: 0, style: 'fill:var(--accent);fill-opacity:.15;pointer-events:none' }, svg);
    var readout = element('div', null, svg.parentNode);
    readout.className = 'readout hidden';

    function across(value) { return frame[0] + x.place(value) * frame[2]; }
    function up(value) { return frame[1] + (1 - Math.max(0, Math.min(1, y.place(value)))) * frame[3]; }

    // The values under the pointer, each with its distance in pixels.
    function rows(place, down) {
      var found = [];
      series.forEach(function (one, index) {
        if ((!isParts && hidden[index]) || !one.points.length) return;
        var points = one.points, row = { index: index, name: one.name };
        if (isScattered) {
          for (var i = 0; i < points.length; i += 2) {
            var distance = Math.hypot((x.place(points[i]) - place) * frame[2], (y.place(points[i + 1]) - down) * frame[3]);
            if (distance < 20 && (!found.length || distance < found[0].distance)) {
              found = [{ index: index, name: one.name, x: points[i], y: points[i + 1], half: (one.half_widths || [])[i / 2], distance: distance }];
            }
          }
          return;
        }
        if (isShare) {
          var first = Math.max(0, find(points, y.value(down) - 1e-12, 'steps', 1) + 1);
          if (2 * first >= points.length) return;
          row.y = points[2 * first];
          row.distance = Math.abs(x.place(row.y) - place) * frame[2];
        } else {
          var at = find(points, x.value(place), one.shape, 0);
          if (at < 0 || (one.shape === 'steps' && at === points.length / 2 - 1)) return;
          row.x = points[2 * at];
          row.y = points[2 * at + 1];
          row.half = (one.half_widths || [])[at];
          row.distance = Math.abs(y.place(row.y) - down) * frame[3];
        }
        found.push(row);
      });
      return found.sort(function (a, b) { return b.y - a.y || a.index - b.index; });
    }

    function emphasise(index) {
      if (index === focus) return;
      focus = index;
      all(svg, '[data-series]', function (part) { part.classList.toggle('dim', index >= 0 && +part.dataset.series !== index); });
    }

    function at(event) {
      var box = svg.getBoundingClientRect(), size = svg.viewBox.baseVal;
      return {
        box: box,
        place: ((event.clientX - box.left) / box.width * size.width - frame[0]) / frame[2],
        down: 1 - ((event.clientY - box.top) / box.height * size.height - frame[1]) / frame[3]
      };
    }

    function show(event) {
      var here = at(event), place = here.place, down = here.down;
      if (begun !== null) {
        var from = Math.max(0, Math.min(begun, place)), to = Math.min(1, Math.max(begun, place));
        choice.setAttribute('x', frame[0] + from * frame[2]);
        choice.setAttribute('width', Math.max(0, (to - from) * frame[2]));
      }
      if (place < 0 || place > 1 || down < 0 || down > 1) return hide();
      var found = rows(place, down);
      if (!found.length) return hide();
      var nearest = found.reduce(function (best, row) { return row.distance < best.distance ? row : best; });
      emphasise(series.length > 1 && nearest.distance < 24 ? nearest.index : -1);
      guide.setAttribute('d', isShare ? 'M' + frame[0] + ' ' + (frame[1] + (1 - down) * frame[3]) + 'h' + frame[2]
        : 'M' + (isScattered ? across(found[0].x) : frame[0] + place * frame[2]) + ' ' + frame[1] + 'v' + frame[3]);
      readout.textContent = '';
      element('b', isShare ? label(y.value(down), 'share') + ' took at most' : label(isScattered ? found[0].x : x.value(place), x.unit), readout);
      found.forEach(function (row) {
        var span = element('span', null, readout), unit = isShare ? x.unit : y.unit;
        if (row.index === focus) span.className = 'focus';
        element('i', row.name, span).style.color = 'var(--series-' + series[row.index].look % 8 + ')';
        element('strong', label(row.y, unit) + (row.half ? ' ± ' + label(row.half, unit).replace('×', '') : ''), span);
      });
      readout.className = 'readout';
      var host = svg.parentNode.getBoundingClientRect(), left = event.clientX - host.left, width = readout.offsetWidth;
      left = left + 16 + width > host.width ? left - 16 - width : left + 16;
      readout.style.left = Math.max(0, Math.min(left, host.width - width)) + 'px';
      readout.style.top = (here.box.top - host.top + frame[1] * here.box.height / svg.viewBox.baseVal.height + 4) + 'px';
    }
    function hide() {
      readout.className = 'readout hidden';
      guide.setAttribute('d', '');
      emphasise(-1);
    }

    function path(one) {
      var d = '', points = one.points;
      for (var i = 0; i < points.length; i += 2) {
        if (!(isFinite(x.place(points[i])) && isFinite(y.place(points[i + 1])))) continue;
        var px = round(across(points[i])), py = round(up(points[i + 1]));
        if (one.shape === 'dots') d += 'M' + px + ' ' + py + 'h0';
        else if (!d) d = 'M' + px + ' ' + py;
        else d += one.shape === 'steps' ? 'H' + px + 'V' + py : 'L' + px + ' ' + py;
      }
      return d;
    }

    // Draws the part of the x axis between two places of the present view; all of it without places.
    function zoom(view) {
      if (!isCurve) return;
      svg.classList.toggle('zoomed', !!view);
      if (!zoomed) {
        var clip = drawn('clipPath', { id: svg.id + '-clip' }, svg);
        drawn('rect', { x: frame[0], y: frame[1] - 2, width: frame[2], height: frame[3] + 4 }, clip);
        zoomed = drawn('g', { 'class': 'ticks' }, svg);
        all(svg, 'path.series', function (part) { part.setAttribute('clip-path', 'url(#' + svg.id + '-clip)'); });
      }
      x = scale(svg.dataset.x, view);
      x.view = view;
      all(svg, 'path.series', function (part) {
        part.whole = part.whole || part.getAttribute('d');
        part.setAttribute('d', view ? path(series[+part.dataset.series]) : part.whole);
      });
      zoomed.textContent = '';
      if (!view) return;
      var bottom = frame[1] + frame[3], reached = -1;
      ticks(x).forEach(function (value) {
        var px = round(across(value));
        drawn('path', { d: 'M' + px + ' ' + frame[1] + 'V' + (bottom + 5), style: 'stroke:var(--grid);stroke-width:1' }, zoomed);
        if (px < reached) return;
        drawn('text', { x: px, y: bottom + 18, 'text-anchor': 'middle', style: 'fill:var(--muted);font-size:11.5px' }, zoomed).textContent = label(value, x.unit);
        reached = px + 64;
      });
    }

    svg.addEventListener('pointermove', show);
    svg.addEventListener('pointerdown', function (event) {
      var here = at(event);
      if (here.place >= 0 && here.place <= 1 && here.down >= 0 && here.down <= 1) begun = here.place;
      show(event);
    });
    svg.addEventListener('pointerup', function (event) {
      var from = begun, to = at(event).place;
      begun = null;
      choice.setAttribute('width', 0);
      if (from === null) return;
      if (Math.abs(to - from) * frame[2] > 8) {
        var old = x.view || [0, 1], size = old[1] - old[0];
        zoom([old[0] + size * Math.max(0, Math.min(from, to)), old[0] + size * Math.min(1, Math.max(from, to))]);
      } else if (focus >= 0 && !isParts && event.detail < 2) isolate(scope, focus);
    });
    svg.addEventListener('dblclick', function () { zoom(null); });
    svg.addEventListener('pointerleave', function () { begun = null; choice.setAttribute('width', 0); hide(); });
    svg.dataset.live = series.reduce(function (sum, one) { return sum + one.points.length / 2; }, 0);
  }

  // A series that is hidden is hidden in every chart of its scope: the page, or an element with data-scope.
  function scopeOf(node) { return node.closest('[data-scope]') || document.documentElement; }
  function hiddenIn(scope) { return scope.hiddenSeries || (scope.hiddenSeries = {}); }
  function within(scope, selector, visit) {
    all(scope, selector, function (part) { if (scopeOf(part) === scope) visit(part); });
  }
  function toggle(scope, index, hide) {
    hiddenIn(scope)[index] = hide;
    within(scope, '.legend button[data-series="' + index + '"]', function (button) { button.setAttribute('aria-pressed', hide ? 'false' : 'true'); });
    within(scope, 'svg:not([data-parts]) [data-series="' + index + '"], .cell[data-drive="' + index + '"]', function (part) { part.classList.toggle('hidden', hide); });
  }

  // Shows one series alone; the same one again brings those back that were shown before.
  function isolate(scope, index) {
    var before = scope.isolated, restored = before && before.only === index, shown = {};
    within(scope, '.legend button', function (button) { shown[button.dataset.series] = !hiddenIn(scope)[button.dataset.series]; });
    scope.isolated = restored ? null : { only: index, shown: before ? before.shown : shown };
    Object.keys(shown).forEach(function (key) { toggle(scope, +key, restored ? !before.shown[key] : +key !== index); });
  }

  all(document, '.legend button', function (button) {
    var scope = scopeOf(button), index = button.dataset.series;
    if (button.getAttribute('aria-pressed') === 'false') hiddenIn(scope)[index] = true;
    button.disabled = false;
    button.addEventListener('click', function () { toggle(scope, +index, !hiddenIn(scope)[index]); });
  });
  // The chart of a figure as a drawing of its own for a page on paper: the narrow one, 88 mm wide, in the light colours, with
  // its legend.
  function drawing(part) {
    var panes = Array.prototype.filter.call(part.querySelectorAll('.narrow svg:not(.swatch)'), function (svg) {
      var pane = svg.closest('.pane');
      return !pane || pane.offsetParent !== null;
    });
    if (!panes.length) return null;
    var svg = panes[0].cloneNode(true), box = panes[0].viewBox.baseVal, x = 8, y = box.height + 12;
    all(svg, '.hidden', function (part) { part.remove(); });
    all(part, '.legend li', function (item) {
      var button = item.querySelector('button'), name = item.textContent, width = 44 + 6.6 * name.length;
      if (button && button.getAttribute('aria-pressed') === 'false') return;
      if (x > 8 && x + width > box.width) { x = 8; y += 18; }
      var swatch = svg.appendChild(item.querySelector('svg').cloneNode(true));
      swatch.setAttribute('x', x);
      swatch.setAttribute('y', y - 10);
      drawn('text', { x: x + 34, y: y, style: 'fill:var(--ink);font-size:11.5px' }, svg).textContent = name;
      x += width;
    });
    var height = x > 8 || y > box.height + 12 ? y + 8 : box.height;
    svg.setAttribute('viewBox', '0 0 ' + box.width + ' ' + height);
    svg.setAttribute('width', '88mm');
    svg.setAttribute('height', round(88 * height / box.width) + 'mm');
    var light = document.styleSheets[0].cssRules[0].style;
    return { width: box.width, height: height, name: svg.id.replace(/-narrow$/, ''),
      text: new XMLSerializer().serializeToString(svg).replace(/var\((--[a-z0-9-]+)\)/g, function (whole, name) { return light.getPropertyValue(name).trim(); }) };
  }
  function save(blob, name) {
    var link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
  }
  function saveSvg(made) { save(new Blob([made.text], { type: 'image/svg+xml' }), made.name + '.svg'); }
  // 600 dots an inch.
  function savePng(made) {
    var image = new Image(), canvas = document.createElement('canvas');
    canvas.width = Math.round(88 / 25.4 * 600);
    canvas.height = Math.round(canvas.width * made.height / made.width);
    image.onload = function () {
      var pen = canvas.getContext('2d');
      pen.fillStyle = '#fff';
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(function (blob) { save(blob, made.name + '.png'); });
    };
    image.src = 'data:image/svg+xml,' + encodeURIComponent(made.text);
  }
  // A figure with several charts beside each other has buttons below each.
  all(document, 'figure', function (figure) {
    var charts = figure.querySelectorAll('.pair>.cell');
    Array.prototype.forEach.call(charts.length ? charts : [figure], function (part) {
      if (!part.querySelector('.narrow svg')) return;
      var line = element('p', null, part);
      line.className = 'save';
      [['SVG', saveSvg], ['PNG', savePng]].forEach(function (kind) {
        var button = element('button', kind[0], line);
        button.type = 'button';
        button.title = 'Save this chart as ' + kind[0] + ', 88 mm wide';
        button.addEventListener('click', function () { kind[1](drawing(part)); });
      });
    });
  });

  all(document, 'figure svg[data-plot]', live);
  document.documentElement.dataset.live = document.querySelectorAll('svg[data-live]').length;
}());
