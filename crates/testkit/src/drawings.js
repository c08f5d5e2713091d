(function () {
  'use strict';
  var found = [];
  function box(element) { return element.getBoundingClientRect(); }
  function overlap(a, b) {
    var across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    return across > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5;
  }
  // The different places in a path: a line through one place cannot be seen.
  function places(d) {
    var seen = {}, x = 0, y = 0;
    (d.match(/[MLHV][^A-Za-z]*/g) || []).forEach(function (part) {
      var numbers = part.slice(1).trim().split(/[\s,]+/).map(Number);
      if (part[0] === 'H') x = numbers[0];
      else if (part[0] === 'V') y = numbers[0];
      else { x = numbers[0]; y = numbers[1]; }
      seen[x + ' ' + y] = true;
    });
    return Object.keys(seen).length;
  }
  Array.prototype.forEach.call(document.querySelectorAll('svg[viewBox]:not(.swatch)'), function (svg) {
    var frame = box(svg);
    if (frame.width === 0) return;
    function say(what) { found.push(svg.id + ': ' + what); }
    var texts = Array.prototype.filter.call(svg.querySelectorAll('text'), function (text) { return text.textContent.trim() && box(text).width > 0; });
    texts.forEach(function (text, index) {
      var own = box(text);
      if (own.left < frame.left - 1 || own.right > frame.right + 1 || own.top < frame.top - 1 || own.bottom > frame.bottom + 1) {
        say('the text leaves the frame: ' + text.textContent);
      }
      texts.slice(0, index).forEach(function (other) {
        if (overlap(own, box(other))) say('texts overlap: ' + other.textContent + ' | ' + text.textContent);
      });
    });
    Array.prototype.forEach.call(svg.querySelectorAll('path.series'), function (path) {
      var d = path.getAttribute('d') || '', isLine = /[LHV]/.test(d) && !/Z/i.test(d) && !/h0/.test(d);
      if (d === '' && svg.querySelectorAll('path.series').length === 1) say('no points: ' + path.dataset.name);
      if ((isLine || /^M[^A-Za-z]*$/.test(d)) && places(d) < 2) say('fewer than two points: ' + path.dataset.name);
    });
  });
  var pre = document.createElement('pre');
  pre.id = 'found';
  pre.textContent = found.join('\n');
  document.body.appendChild(pre);
}());
