// The runtime of run.animate() and robot.show(): reads window.DALEMBERT_DATA, draws it, plays it.
import {
  WebGLRenderer, Scene, PerspectiveCamera, Mesh, BufferGeometry, BufferAttribute, CapsuleGeometry, SphereGeometry, BoxGeometry,
  CylinderGeometry, ConeGeometry, TorusGeometry, TubeGeometry, Curve, PlaneGeometry, EdgesGeometry, LineSegments, LineBasicMaterial,
  MeshStandardMaterial, MeshBasicMaterial, ShadowMaterial, DirectionalLight, HemisphereLight, GridHelper, Group, Vector3, Vector2,
  Quaternion, Color, Box3, Raycaster, PCFSoftShadowMap, DoubleSide, FrontSide,
} from 'three';
import { OrbitControls } from 'three/addons/controls/OrbitControls.js';
import { toCreasedNormals } from 'three/addons/utils/BufferGeometryUtils.js';

const $ = (id) => document.getElementById(id);
const PICKED = 0x3a2f00;
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [], [7, 4]];   // lines that lie on each other are seen, and told apart without colours
const Y = new Vector3(0, 1, 0), Z = new Vector3(0, 0, 1);

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))).arrayBuffer();
}

// Rows of samples: 16-bit integers, second differences in time, each row with its least value and its range.
function decoded(raw, low, range, n) {
  const rows = low.length, out = new Float32Array(rows * n);
  for (let r = 0; r < rows; r++) {
    let value = 0, slope = 0;
    for (let k = 0; k < n; k++) {
      slope = (slope + raw[r * n + k]) & 0xffff; value = (value + slope) & 0xffff;
      out[r * n + k] = low[r] + range[r] * value / 65535;
    }
  }
  return out;
}

class Helix extends Curve {
  constructor(radius, length) { super(); this.radius = radius; this.length = length; }

  getPoint(s, target = new Vector3()) {
    const w = this.radius * Math.min(1, s / 0.1, (1 - s) / 0.1), a = 2 * Math.PI * 9 * s;
    return target.set(w * Math.cos(a), w * Math.sin(a), s * this.length);
  }
}

async function main() {
  const data = window.DALEMBERT_DATA, head = data.head, colors = head.colors, arrays = {}, buffer = await inflate(data.body);
  const types = { f4: Float32Array, u4: Uint32Array, u2: Uint16Array, i2: Int16Array, u1: Uint8Array };
  for (const [name, type, offset, count] of head.arrays) arrays[name] = new types[type](buffer, offset, count);
  const t = arrays.t, n = t.length, still = n < 2, span = still ? 1 : t[n - 1] - t[0];
  const rows = decoded(arrays.rows, arrays.low, arrays.range, n), at = head.at;
  const value = (row, k, u) => { const a = rows[row * n + k]; return u === 0 || k + 1 >= n ? a : a + u * (rows[row * n + k + 1] - a); };

  // stage --------------------------------------------------------------------------------------------------------------
  const dark = matchMedia('(prefers-color-scheme: dark)').matches, ground = new Color(dark ? 0x15181c : 0xf6f7f9);
  const renderer = new WebGLRenderer({ antialias: true, preserveDrawingBuffer: true });
  renderer.setPixelRatio(devicePixelRatio); renderer.shadowMap.enabled = true; renderer.shadowMap.type = PCFSoftShadowMap;
  const stage = $('stage'); stage.appendChild(renderer.domElement);
  const scene = new Scene(); scene.background = ground;
  const up = new Vector3().fromArray(head.up), upright = new Quaternion().setFromUnitVectors(Z, up);
  const camera = new PerspectiveCamera(36, 1, 0.001, 1000); camera.up.copy(up);
  const orbit = new OrbitControls(camera, renderer.domElement);
  scene.add(new HemisphereLight(0xffffff, dark ? 0x334455 : 0xb9c0c8, 1.9));
  const sun = new DirectionalLight(0xffffff, 2.2); sun.castShadow = true; sun.shadow.mapSize.set(2048, 2048); sun.shadow.radius = 3; sun.shadow.bias = -0.0005;
  scene.add(sun, sun.target);

  // bodies -------------------------------------------------------------------------------------------------------------
  const meshes = {};
  const meshGeometry = (k) => {
    if (meshes[k]) return meshes[k];
    const { low, size } = head.meshes[k], raw = arrays[`mesh${k}.v`], p = new Float32Array(raw.length);
    for (let i = 0; i < p.length; i++) p[i] = low[i % 3] + raw[i] / 65535 * size[i % 3];
    const g = new BufferGeometry(); g.setAttribute('position', new BufferAttribute(p, 3)); g.setIndex(new BufferAttribute(arrays[`mesh${k}.f`], 1));
    meshes[k] = toCreasedNormals(g, 0.7); return meshes[k];
  };
  const geometry = (s) => {
    const d = s.size;
    if (s.kind === 'mesh') return meshGeometry(s.mesh);
    if (s.kind === 'box') return new BoxGeometry(...d);
    if (s.kind === 'sphere') return new SphereGeometry(d[0], 32, 20);
    if (s.kind === 'ellipsoid') return new SphereGeometry(1, 32, 20).scale(...d);
    if (s.kind === 'plane') return new PlaneGeometry(2 * (d[0] || 3 * head.scale), 2 * (d[1] || 3 * head.scale));
    if (s.kind === 'capsule') return new CapsuleGeometry(d[0], d[1], 8, 24).rotateX(Math.PI / 2);
    return new CylinderGeometry(d[0], d[0], d[1], 32).rotateX(Math.PI / 2);
  };
  const pickable = [];
  const build = (body, index, ghost) => {
    const group = new Group(); group.name = body.name;
    for (const s of body.shapes) {
      const opacity = ghost ? 0.22 : s.opacity, solid = opacity === 1;
      const material = new MeshStandardMaterial({ color: s.color, roughness: 0.55, metalness: 0.08, transparent: !solid, opacity, depthWrite: solid, side: s.kind === 'plane' || s.flip ? DoubleSide : FrontSide });
      const mesh = new Mesh(geometry(s), material);
      if (s.position) mesh.position.fromArray(s.position);
      if (s.quaternion) mesh.quaternion.fromArray(s.quaternion);
      if (s.scale) mesh.scale.fromArray(s.scale);
      mesh.castShadow = solid && s.kind !== 'plane'; mesh.receiveShadow = !ghost;
      if (!ghost && index >= 0) { mesh.userData.body = index; pickable.push(mesh); }
      if (body.massless && !ghost && s.kind !== 'mesh') {
        const outline = s.kind === 'capsule' ? new CylinderGeometry(s.size[0], s.size[0], s.size[1], 8, 1, true).rotateX(Math.PI / 2) : mesh.geometry;
        mesh.add(new LineSegments(new EdgesGeometry(outline, 20), new LineBasicMaterial({ color: dark ? 0x99aabb : 0x556677, transparent: true, opacity: 0.55 })));
      }
      group.add(mesh);
    }
    scene.add(group); return group;
  };
  const bodies = head.bodies.map((b, i) => build(b, i, false));
  const ghosts = at.ghosts.map((start) => ({ start, groups: head.bodies.map((b, i) => build(b, i, true)) }));
  const world = build({ name: head.ground, shapes: head.scenery }, -1, false);
  for (const place of head.anchors) {                               // where something is tied to the ground: a small block below it
    const s = 0.06 * head.scale, cone = new Mesh(new ConeGeometry(s, 1.5 * s, 4).rotateY(Math.PI / 4).rotateX(Math.PI / 2), new MeshStandardMaterial({ color: 0x9aa3ad, roughness: 0.9 }));
    cone.position.fromArray(place).addScaledVector(up, -0.75 * s); cone.quaternion.copy(upright); cone.castShadow = true; scene.add(cone);
  }

  // springs and rods: stretched between points of two bodies --------------------------------------------------------------
  const links = head.links.map((link) => {
    const r = 0.009 * head.scale, whole = head.scale / 2;             // drawn half the mechanism long, then stretched
    const shape = link.kind === 'spring' ? new TubeGeometry(new Helix(0.028 * head.scale, whole), 260, 0.0055 * head.scale, 8) : new CylinderGeometry(r, r, whole, 16).rotateX(Math.PI / 2).translate(0, 0, whole / 2);
    const mesh = new Mesh(shape, new MeshStandardMaterial(link.kind === 'spring' ? { color: 0x6c7a89, roughness: 0.5 } : { color: 0xffffff, transparent: true, opacity: 0.75, roughness: 0.6 }));
    mesh.castShadow = true; scene.add(mesh); return { mesh, whole, ...link };
  });

  // markers: rings where a constraint acts, coloured by whether its reactions are unique ----------------------------------
  const rings = head.rings.map((ring) => {
    const mesh = new Mesh(new TorusGeometry(0.052 * head.scale, 0.0085 * head.scale, 12, 40), new MeshBasicMaterial());
    mesh.quaternion.fromArray(ring.quaternion); mesh.position.fromArray(ring.position);
    (ring.body < 0 ? world : bodies[ring.body]).add(mesh); return { mesh, ...ring };
  });

  // forces -------------------------------------------------------------------------------------------------------------
  const arrows = head.forces.map((force) => {
    const material = new MeshBasicMaterial({ color: colors.forces[force.kind], transparent: true, opacity: force.kind === 'family' ? 0.75 : 0.92, depthTest: false });
    const r = head.scale * 0.0085, shaft = new Mesh(new CylinderGeometry(r, r, 1, 14).translate(0, 0.5, 0), material), tip = new Mesh(new ConeGeometry(2.8 * r, 6.5 * r, 20).translate(0, 3.25 * r, 0), material);
    const group = new Group(); group.add(shaft, tip); shaft.renderOrder = tip.renderOrder = 10; scene.add(group);
    return { group, shaft, tip, r };
  });
  const reach = head.arrow;

  // ground, light, camera ------------------------------------------------------------------------------------------------
  const size = head.scale * 8, grid = new GridHelper(size, 32, dark ? 0x3a4048 : 0xc2c8cf, dark ? 0x262b31 : 0xdfe3e8);
  const base = new Group(); base.quaternion.copy(upright); base.position.copy(up).multiplyScalar(head.floor); scene.add(base);
  grid.rotation.x = Math.PI / 2; base.add(grid);
  const floor = new Mesh(new PlaneGeometry(size, size), new ShadowMaterial({ opacity: dark ? 0.4 : 0.16 })); floor.position.z = -2e-4 * head.scale; floor.receiveShadow = true; base.add(floor);

  const quaternion = new Quaternion(), other = new Quaternion(), vector = new Vector3(), end = new Vector3();
  const placed = (groups, start, k, u) => groups.forEach((g, i) => {
    const r = start + 7 * i; g.position.set(value(r, k, u), value(r + 1, k, u), value(r + 2, k, u));
    quaternion.set(value(r + 3, k, 0), value(r + 4, k, 0), value(r + 5, k, 0), value(r + 6, k, 0)).normalize();
    if (u > 0 && k + 1 < n) { other.set(value(r + 3, k + 1, 0), value(r + 4, k + 1, 0), value(r + 5, k + 1, 0), value(r + 6, k + 1, 0)).normalize(); quaternion.slerp(other, u); }
    g.quaternion.copy(quaternion);
  });
  const tip = (body, local, out) => (body < 0 ? out.fromArray(local) : out.fromArray(local).applyQuaternion(bodies[body].quaternion).add(bodies[body].position));
  const pose = (k, u) => {
    placed(bodies, at.poses, k, u); ghosts.forEach((g) => placed(g.groups, g.start, k, u));
    for (const { mesh, whole, a, pa, b, pb } of links) {
      tip(a, pa, vector); tip(b, pb, end).sub(vector); const length = end.length();
      mesh.visible = length > 1e-9 * head.scale; if (!mesh.visible) continue;
      mesh.position.copy(vector); mesh.quaternion.setFromUnitVectors(Z, end.normalize()); mesh.scale.set(1, 1, length / whole);
    }
    arrows.forEach(({ group, shaft, tip: point, r }, i) => {
      const row = at.forces + 6 * i; vector.set(value(row + 3, k, u), value(row + 4, k, u), value(row + 5, k, u));
      const length = vector.length() * reach; group.visible = showForces && length > 3 * r; if (!group.visible) return;
      group.position.set(value(row, k, u), value(row + 1, k, u), value(row + 2, k, u)); group.quaternion.setFromUnitVectors(Y, vector.normalize());
      const cone = Math.min(6.5 * r, 0.6 * length); point.scale.setScalar(cone / (6.5 * r)); shaft.scale.y = Math.max(length - cone, 1e-9); point.position.y = length - cone;
    });
    rings.forEach(({ mesh }, i) => mesh.material.color.set(colors.forces[arrays.unique[i * n + k] ? 'unique' : 'family']));
  };
  let showForces = true, playing = !still && !/[#&]paused/.test(location.hash), time = t[0], speed = 1, dirty = true, last = null, frames = 0, picked = -1;
  const box = new Box3();
  const home = () => {                                              // the whole motion in view: the box of a few samples
    box.makeEmpty(); for (let j = 0; j < 12; j++) { pose(Math.round(j / 11 * (n - 1)), 0); scene.updateMatrixWorld(); bodies.forEach((b) => { if (b.children.length) box.expandByObject(b); }); }
    for (const p of head.outline) box.expandByPoint(vector.fromArray(p));  // springs, arrows and anchors
    if (box.isEmpty()) box.set(new Vector3(-1, -1, -1).multiplyScalar(head.scale), new Vector3(1, 1, 1).multiplyScalar(head.scale));
    const c = box.getCenter(new Vector3()), r = Math.max(box.getSize(new Vector3()).length() / 2, head.scale / 4);
    const back = new Vector3().fromArray(head.view).normalize(), right = new Vector3().crossVectors(up, back).normalize(), top = new Vector3().crossVectors(back, right);
    const slope = Math.tan(camera.fov * Math.PI / 360) * 0.82; let away = 0;  // so far that all corners of the box are inside
    for (let j = 0; j < 8; j++) {
      vector.set(j & 1 ? box.max.x : box.min.x, j & 2 ? box.max.y : box.min.y, j & 4 ? box.max.z : box.min.z).sub(c);
      away = Math.max(away, vector.dot(back) + Math.max(Math.abs(vector.dot(top)), Math.abs(vector.dot(right)) / camera.aspect) / slope);
    }
    orbit.target.copy(c); camera.position.copy(c).addScaledVector(back, Math.max(away, head.scale / 2));
    camera.near = r / 100; camera.far = r * 200; camera.updateProjectionMatrix(); orbit.update();
    const across = new Vector3().fromArray(head.view).cross(up).normalize();
    sun.position.copy(c).addScaledVector(up, 6 * r).addScaledVector(new Vector3().fromArray(head.view).normalize(), 2.5 * r).addScaledVector(across, -2.5 * r); sun.target.position.copy(c);
    Object.assign(sun.shadow.camera, { left: -2 * r, right: 2 * r, top: 2 * r, bottom: -2 * r, near: r / 10, far: 20 * r }); sun.shadow.camera.updateProjectionMatrix();
  };

  // lines over time: one canvas, drawn once; the cursor is an element above it --------------------------------------------
  const lt = arrays.line_t || [], lineRows = lt.length ? decoded(arrays.lines, arrays.line_low, arrays.line_range, lt.length) : [];
  const plot = $('plot'), lines = head.lines, edge = { l: 58, r: 14, t: 18, b: 20 };
  const ticks = (lo, hi, want) => { const s = 10 ** Math.floor(Math.log10((hi - lo) / want)), k = [1, 2, 5, 10].find((m) => (hi - lo) / (m * s) <= want) * s, out = []; for (let x = Math.ceil(lo / k) * k; x <= hi + 1e-9 * k; x += k) out.push(+x.toPrecision(6)); return out; };
  const drawPlot = () => {
    if (!lines.length || still) { $('under').style.display = 'none'; return; }
    const d = devicePixelRatio, w = plot.clientWidth, h = plot.clientHeight; plot.width = w * d; plot.height = h * d;
    const c = plot.getContext('2d'); c.scale(d, d); c.font = '11px system-ui,sans-serif';
    let lo = Infinity, hi = -Infinity; const ys = lines.map((_, i) => lineRows.subarray(i * lt.length, (i + 1) * lt.length));
    ys.forEach((y) => y.forEach((v) => { lo = Math.min(lo, v); hi = Math.max(hi, v); })); if (!(hi - lo > 1e-12)) { hi += 1; lo -= 1; }
    const X = (x) => edge.l + (x - t[0]) / span * (w - edge.l - edge.r), V = (y) => h - edge.b - (y - lo) / (hi - lo) * (h - edge.t - edge.b);
    const ink = dark ? '#aab' : '#556'; c.fillStyle = ink; c.strokeStyle = dark ? '#2c3138' : '#e3e6ea'; c.lineWidth = 1;
    c.textAlign = 'right'; c.textBaseline = 'middle'; for (const y of ticks(lo, hi, 4)) { c.beginPath(); c.moveTo(edge.l, V(y)); c.lineTo(w - edge.r, V(y)); c.stroke(); c.fillText(y, edge.l - 5, V(y)); }
    c.textAlign = 'center'; c.textBaseline = 'top'; for (const x of ticks(t[0], t[n - 1], w > 600 ? 10 : 5)) c.fillText(`${x} s`, X(x), h - edge.b + 5);
    c.setLineDash([3, 3]); c.strokeStyle = dark ? '#667' : '#99a'; for (const e of head.events) { c.beginPath(); c.moveTo(X(e), edge.t); c.lineTo(X(e), h - edge.b); c.stroke(); } c.setLineDash([]);
    ys.forEach((y, i) => { c.strokeStyle = colors.lines[i % colors.lines.length]; c.lineWidth = 1.6; c.setLineDash(DASHES[i % 6]); c.beginPath(); for (let k = 0; k < lt.length; k++) k ? c.lineTo(X(lt[k]), V(y[k])) : c.moveTo(X(lt[k]), V(y[k])); c.stroke(); });
    let x = edge.l; c.textAlign = 'left'; lines.forEach((name, i) => {
      c.strokeStyle = c.fillStyle = colors.lines[i % colors.lines.length]; c.setLineDash(DASHES[i % 6]); c.beginPath(); c.moveTo(x, 8); c.lineTo(x + 24, 8); c.stroke();
      c.fillText(name, x + 29, 2); x += c.measureText(name).width + 48;
    });
    c.setLineDash([]);
    plot.X = X;
  };
  const cursor = () => { if (plot.X) $('cursor').style.left = plot.X(time) + 'px'; };
  const fromPlot = (e) => { if (e.buttons) { const b = plot.getBoundingClientRect(); play(false); set(t[0] + (e.clientX - b.left - edge.l) / (b.width - edge.l - edge.r) * span); } };
  plot.addEventListener('pointerdown', fromPlot); plot.addEventListener('pointermove', fromPlot);

  // picking a body: its joint's values at the time ------------------------------------------------------------------------
  const panel = $('panel'), ray = new Raycaster(), mouse = new Vector2();
  const words = (k, u) => {
    if (picked < 0) { panel.hidden = true; return; }
    const body = head.bodies[picked], lines = [[`joint ${body.joint}`, body.kind], [`body ${body.name}`, body.massless ? 'massless' : `${body.mass} kg`]];
    for (const [label, row, unit] of body.values) lines.push([label, `${value(at.values + row, k, u).toPrecision(5)} ${unit}`]);
    panel.hidden = false; panel.replaceChildren(...lines.flatMap(([a, b]) => { const x = document.createElement('dt'), y = document.createElement('dd'); x.textContent = a; y.textContent = b; return [x, y]; }));
  };
  const pick = (index) => {
    picked = index === picked ? -1 : index;
    bodies.forEach((g, i) => g.children.forEach((m) => m.material.emissive && m.material.emissive.setHex(i === picked ? PICKED : 0))); dirty = true;
  };
  let down = null;
  renderer.domElement.addEventListener('pointerdown', (e) => { down = [e.clientX, e.clientY]; });
  renderer.domElement.addEventListener('pointerup', (e) => {
    if (!down || Math.hypot(e.clientX - down[0], e.clientY - down[1]) > 4) return;
    const b = renderer.domElement.getBoundingClientRect(); mouse.set((e.clientX - b.left) / b.width * 2 - 1, 1 - (e.clientY - b.top) / b.height * 2);
    ray.setFromCamera(mouse, camera); const hit = ray.intersectObjects(pickable, false)[0]; pick(hit ? hit.object.userData.body : picked);
  });

  // controls -----------------------------------------------------------------------------------------------------------
  const slider = $('slider'); slider.min = t[0]; slider.max = t[n - 1]; slider.step = 'any';
  const set = (x) => { time = Math.min(Math.max(x, t[0]), t[n - 1]); dirty = true; };
  const play = (on) => { playing = on && !still; $('play').textContent = playing ? '❚❚' : '▶'; $('play').setAttribute('aria-label', playing ? 'Pause' : 'Play'); dirty = true; };
  if (still) $('bar').style.display = 'none';
  if (!arrows.length) $('forces').parentNode.style.display = 'none';
  $('play').onclick = () => play(!playing);
  slider.oninput = () => { play(false); set(+slider.value); };
  $('speed').onchange = (e) => { speed = +e.target.value; };
  $('forces').onchange = (e) => { showForces = e.target.checked; rings.forEach(({ mesh }) => { mesh.visible = showForces; }); dirty = true; };
  $('video').onclick = () => {                                      // one pass, as a file
    const parts = [], recorder = new MediaRecorder(renderer.domElement.captureStream(30), { mimeType: 'video/webm', videoBitsPerSecond: 6e6 });
    recorder.ondataavailable = (e) => parts.push(e.data);
    recorder.onstop = () => { const a = document.createElement('a'); a.href = URL.createObjectURL(new Blob(parts, { type: 'video/webm' })); a.download = `${head.title}.webm`; a.click(); };
    set(t[0]); play(true); recorder.start(); setTimeout(() => recorder.stop(), 1000 * span / speed);
  };
  if (still || typeof MediaRecorder === 'undefined') $('video').style.display = 'none';
  orbit.addEventListener('change', () => { dirty = true; });
  addEventListener('keydown', (e) => {
    const step = span / Math.max(n - 1, 1) * (e.shiftKey ? 10 : 1);
    const act = { ' ': () => play(!playing), ArrowRight: () => { play(false); set(time + step); }, ArrowLeft: () => { play(false); set(time - step); },
      Home: () => set(t[0]), End: () => set(t[n - 1]), f: () => $('forces').click(), r: () => { home(); dirty = true; } }[e.key];
    if (act && !(e.target instanceof HTMLSelectElement)) { act(); e.preventDefault(); }
  });
  let placedCamera = false;
  const resize = () => {
    const w = Math.max(stage.clientWidth, 1), h = Math.max(stage.clientHeight, 1);
    renderer.setSize(w, h); camera.aspect = w / h; camera.updateProjectionMatrix(); drawPlot(); dirty = true;
    if (!placedCamera && stage.clientWidth > 1) { home(); placedCamera = true; }
  };
  new ResizeObserver(resize).observe(stage); resize();
  const asked = /[#&]t=([0-9.]+)/.exec(location.hash); if (asked) set(+asked[1]);
  const loop = (now) => {
    if (playing && last !== null) { let x = time + speed * (now - last) / 1000; if (x > t[n - 1]) x = t[0]; set(x); }
    last = now;
    if (dirty) {
      let k = 0, hi = n - 1; while (hi - k > 1) { const m = (k + hi) >> 1; t[m] <= time ? k = m : hi = m; }
      const u = still ? 0 : Math.min((time - t[k]) / Math.max(t[Math.min(k + 1, n - 1)] - t[k], 1e-12), 1);
      pose(k, u); words(k, u); renderer.render(scene, camera); cursor(); slider.value = time; $('clock').textContent = time.toFixed(2) + ' s'; dirty = false; frames++;
    }
    requestAnimationFrame(loop);
  };
  play(playing); requestAnimationFrame(loop);
  window.dalembert = { set, play, pick, frames: () => frames, time: () => time, names: head.bodies.map((b) => b.name), panel: () => (panel.hidden ? '' : panel.innerText), view: (x, y, z) => { head.view = [x, y, z]; home(); dirty = true; } };
  document.body.dataset.ready = '1';
}
main().catch((e) => { $('stage').textContent = 'This page needs a browser with WebGL 2: ' + e.message; document.body.dataset.failed = e.message; throw e; });
