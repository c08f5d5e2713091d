(function () {
  'use strict';
  var data = JSON.parse(document.getElementById('data').textContent);
  var hidden = {};

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
    return Math.abs(value) >= 100 ? Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f') : digits(value);
  }

  // Scales, as the drawing has them: "name low high unit".
  function scale(text) {
    var words = text.split(' '), low = +words[1], high = +words[2];
    return {
      unit: words[3],
      place: function (value) {
        if (words[0] === 'log10') return Math.log(value / low) / Math.log(high / low);
        if (words[0] === 'percentile') return Math.min(1, -Math.log10(Math.max(1 - value, 1e-15)) / high);
        return (value - low) / (high - low);
      },
      value: function (place) {
        return words[0] === 'log10' ? low * Math.pow(high / low, place) : low + place * (high - low);
      }
    };
  }

  // The last point not right of x, or for lines the nearer one.
  function find(points, x, shape) {
    var low = 0, high = points.length / 2;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (points[2 * middle] <= x) low = middle + 1; else high = middle;
    }
    var at = low - 1;
    if (shape === 'steps') return at;
    if (at < 0) return 0;
    if (2 * at + 2 < points.length && points[2 * at + 2] - x < x - points[2 * at]) at++;
    return at;
  }

  function element(name, text, parent) {
    var made = document.createElement(name);
    if (text !== null) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  function live(svg) {
    var series = data.charts[svg.id];
    if (!series || !svg.dataset.plot) return;
    var frame = svg.dataset.plot.split(' ').map(Number), x = scale(svg.dataset.x), y = scale(svg.dataset.y);
    var line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    line.setAttribute('style', 'stroke:var(--muted);stroke-width:1;fill:none;pointer-events:none');
    svg.appendChild(line);
    var readout = element('div', null, svg.parentNode);
    readout.className = 'readout hidden';

    function rows(place, down) {
      var scattered = series.some(function (one) { return one.shape === 'marks' || one.shape === 'dots'; });
      var found = [];
      series.forEach(function (one, index) {
        if (hidden[index] || !one.points.length) return;
        if (!scattered) {
          var at = find(one.points, x.value(place), one.shape);
          var beyond = at < 0 || (one.shape === 'steps' && svg.dataset.y.indexOf('percentile') < 0 && at === one.points.length / 2 - 1);
          if (!beyond) found.push({ index: index, name: one.name, x: one.points[2 * at], y: one.points[2 * at + 1], half: (one.half_widths || [])[at] });
          return;
        }
        for (var i = 0; i < one.points.length; i += 2) {
          var across = (x.place(one.points[i]) - place) * frame[2], up = (y.place(one.points[i + 1]) - down) * frame[3];
          var distance = across * across + up * up;
          if (distance < 400 && (!found.length || distance < found[0].distance)) found = [{ index: index, name: one.name, x: one.points[i], y: one.points[i + 1], half: (one.half_widths || [])[i / 2], distance: distance }];
        }
      });
      return { found: found, scattered: scattered };
    }

    function show(event) {
      var box = svg.getBoundingClientRect(), size = svg.viewBox.baseVal;
      var place = ((event.clientX - box.left) / box.width * size.width - frame[0]) / frame[2];
      var down = 1 - ((event.clientY - box.top) / box.height * size.height - frame[1]) / frame[3];
      if (place < 0 || place > 1 || down < 0 || down > 1) return hide();
      var all = rows(place, down);
      if (!all.found.length) return hide();
      var at = all.scattered ? x.place(all.found[0].x) : place;
      line.setAttribute('d', 'M' + (frame[0] + at * frame[2]) + ' ' + frame[1] + 'v' + frame[3]);
      readout.textContent = '';
      element('b', label(all.scattered ? all.found[0].x : x.value(place), x.unit), readout);
      all.found.forEach(function (row) {
        var span = element('span', null, readout);
        element('i', row.name, span).style.color = 'var(--series-' + row.index % 8 + ')';
        element('strong', label(row.y, y.unit) + (row.half ? ' ± ' + label(row.half, y.unit).replace('×', '') : ''), span);
      });
      readout.className = 'readout';
      var host = svg.parentNode.getBoundingClientRect(), left = event.clientX - host.left;
      var width = readout.offsetWidth;
      readout.style.left = Math.max(0, left + 16 + width > host.width ? left - 16 - width : left + 16) + 'px';
      readout.style.top = (box.top - host.top + frame[1] * box.height / size.height + 4) + 'px';
    }
    function hide() {
      readout.className = 'readout hidden';
      line.setAttribute('d', '');
    }
    svg.addEventListener('pointermove', show);
    svg.addEventListener('pointerdown', show);
    svg.addEventListener('pointerleave', hide);
    svg.dataset.live = series.reduce(function (sum, one) { return sum + one.points.length / 2; }, 0);
  }

  // A drive that is hidden is hidden in every chart.
  function toggle(index) {
    hidden[index] = !hidden[index];
    document.querySelectorAll('.legend button[data-series="' + index + '"]').forEach(function (button) {
      button.setAttribute('aria-pressed', hidden[index] ? 'false' : 'true');
    });
    document.querySelectorAll('.series[data-series="' + index + '"], .cell[data-drive="' + index + '"]').forEach(function (part) {
      part.classList.toggle('hidden', hidden[index]);
    });
  }

  document.querySelectorAll('figure svg[data-plot]').forEach(live);
  document.querySelectorAll('.legend button').forEach(function (button) {
    button.disabled = false;
    button.addEventListener('click', function () { toggle(+button.dataset.series); });
  });
  document.documentElement.dataset.live = document.querySelectorAll('svg[data-live]').length;
}());
