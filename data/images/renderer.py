"""A small z-buffer renderer: balls, chains of balls, and triangles, lit by a sun and a sky. Knows nothing of
what it draws.

World axes: x to the right, y up, z towards the viewer; the ground is y = 0.
"""

import numpy as np


def unit(v):
    v = np.asarray(v, dtype=np.float64)
    return v / np.linalg.norm(v)


class Camera:
    """Looks at `target` from `distance`, turned by yaw (about y) and pitch (from above, degrees)."""

    def __init__(self, width, height, target, span, yaw=0.0, pitch=0.0, distance=6.0):
        yaw, pitch = np.radians(yaw), np.radians(pitch)
        about_y = np.array([[np.cos(yaw), 0, np.sin(yaw)], [0, 1, 0], [-np.sin(yaw), 0, np.cos(yaw)]])
        about_x = np.array([[1, 0, 0], [0, np.cos(pitch), -np.sin(pitch)], [0, np.sin(pitch), np.cos(pitch)]])
        self.rotation = about_x @ about_y
        self.target = np.asarray(target, dtype=np.float64)
        self.distance = distance
        self.focal = width / span * distance  # `span` world units fill the width at the target
        self.centre = np.array([width / 2, height / 2])

    def to_view(self, points):
        return (np.asarray(points, dtype=np.float64) - self.target) @ self.rotation.T

    def to_world(self, points):
        return points @ self.rotation + self.target

    def to_pixels(self, view):
        scale = self.focal / (self.distance - view[..., 2])
        return self.centre + np.stack([view[..., 0], -view[..., 1]], -1) * scale[..., None], scale

    def horizon(self):
        """Row of the image where the ground plane ends."""
        towards = self.rotation @ np.array([0.0, 0.0, -1.0])
        return self.centre[1] + self.focal * towards[1] / towards[2]


class Scene:

    def __init__(self, camera, width, height):
        self.camera, self.shape = camera, (height, width)
        self.depth = np.full(self.shape, -np.inf, dtype=np.float32)
        self.albedo = np.zeros((*self.shape, 3), dtype=np.float32)
        self.normal = np.zeros((*self.shape, 3), dtype=np.float32)
        self.gloss = np.zeros(self.shape, dtype=np.float32)
        self.fur = np.zeros(self.shape, dtype=np.float32)

    def window(self, low, high):
        height, width = self.shape
        x0, y0 = max(int(low[0]), 0), max(int(low[1]), 0)
        x1, y1 = min(int(high[0]) + 2, width), min(int(high[1]) + 2, height)
        if x0 >= x1 or y0 >= y1:
            return None
        ys, xs = np.mgrid[y0:y1, x0:x1]
        return (slice(y0, y1), slice(x0, x1)), xs + 0.5, ys + 0.5

    def put(self, window, mask, z, normal, colour, gloss, fur):
        mask &= z > self.depth[window]
        for buffer, value in ((self.depth, z), (self.albedo, np.asarray(colour)), (self.normal, normal),
                              (self.gloss, gloss), (self.fur, fur)):
            part = buffer[window]
            part[mask] = value[mask] if isinstance(value,
                                                   np.ndarray) and value.shape[:2] == mask.shape else value

    def ball(self, centre, radius, colour, gloss=0.0, fur=0.0):
        view = self.camera.to_view(centre)
        (px, py), scale = self.camera.to_pixels(view)
        reach = radius * scale
        found = self.window((px - reach, py - reach), (px + reach, py + reach))
        if found is None:
            return
        window, xs, ys = found
        dx, dy = (xs - px) / scale, (py - ys) / scale
        rest = radius * radius - dx * dx - dy * dy
        h = np.sqrt(np.maximum(rest, 0))
        self.put(window, rest > 0, view[2] + h, np.stack([dx, dy, h], -1) / radius, colour, gloss, fur)

    def chain(self, stops, colour, gloss=0.0, fur=0.0):
        """Balls along a smooth curve through stops (x, y, z, radius). `colour` is one colour or one per
        stop."""
        stops = np.asarray(stops, dtype=np.float64)
        colours = np.broadcast_to(np.asarray(colour, dtype=np.float64), (len(stops), 3))
        for i in range(len(stops) - 1):
            before, after = stops[max(i - 1, 0)], stops[min(i + 2, len(stops) - 1)]
            a, b = stops[i], stops[i + 1]
            gap = np.linalg.norm((b - a)[:3])
            steps = int(np.clip(gap / (0.12 * max(min(a[3], b[3]), 0.004)), 2, 60))
            for t in np.linspace(0, 1, steps + 1):
                p = 0.5 * (2 * a + (b - before) * t + (2 * before - 5 * a + 4 * b - after) * t**2 +
                           (3 * a - before - 3 * b + after) * t**3)
                radius = a[3] + (b[3] - a[3]) * (3 * t**2 - 2 * t**3)
                self.ball(p[:3], max(radius, 1e-3), colours[i] * (1 - t) + colours[i + 1] * t, gloss, fur)

    def triangle(self, points, colour, gloss=0.0, normals=None, fur=0.0):
        """A two-sided triangle; `normals` (world, one per corner) smooth it."""
        view = self.camera.to_view(points)
        pixels, _ = self.camera.to_pixels(view)
        found = self.window(pixels.min(0), pixels.max(0))
        (ax, ay), (bx, by), (cx, cy) = pixels
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        if found is None or abs(area) < 1e-9:
            return
        window, xs, ys = found
        wb = ((xs - ax) * (cy - ay) - (cx - ax) * (ys - ay)) / area
        wc = ((bx - ax) * (ys - ay) - (xs - ax) * (by - ay)) / area
        wa = 1 - wb - wc
        inside = (wa >= -1e-6) & (wb >= -1e-6) & (wc >= -1e-6)
        z = wa * view[0, 2] + wb * view[1, 2] + wc * view[2, 2]
        if normals is None:
            flat = unit(np.cross(view[1] - view[0], view[2] - view[0]) + 1e-12)
            normal = np.broadcast_to(flat if flat[2] >= 0 else -flat, (*inside.shape, 3)).copy()
        else:
            turned = np.asarray(normals) @ self.camera.rotation.T
            normal = wa[..., None] * turned[0] + wb[..., None] * turned[1] + wc[..., None] * turned[2]
            normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-9
            normal[normal[..., 2] < 0] *= -1
        self.put(window, inside, z, normal, colour, gloss, fur)

    def polygon(self, points, colour, gloss=0.0):
        """A flat, convex face."""
        for i in range(1, len(points) - 1):
            self.triangle(np.array([points[0], points[i], points[i + 1]]), colour, gloss)

    def box(self, low, high, colour, gloss=0.0):
        (x0, y0, z0), (x1, y1, z1) = low, high
        for face in (((x0, y0, z1), (x1, y0, z1), (x1, y1, z1), (x0, y1, z1)), ((x0, y0, z0), (x1, y0, z0),
                                                                                (x1, y1, z0), (x0, y1, z0)),
                     ((x0, y0, z0), (x0, y0, z1), (x0, y1, z1), (x0, y1, z0)), ((x1, y0, z0), (x1, y0, z1),
                                                                                (x1, y1, z1), (x1, y1, z0)),
                     ((x0, y1, z0), (x1, y1, z0), (x1, y1, z1), (x0, y1, z1)), ((x0, y0, z0), (x1, y0, z0),
                                                                                (x1, y0, z1), (x0, y0, z1))):
            self.polygon(face, colour, gloss)

    def loft(self, sections, colour, gloss=0.0):
        """Joins cross sections (S, K, 3) by smooth quads; `colour` is one colour or a function of (section,
        point)."""
        sections = np.asarray(sections, dtype=np.float64)
        along = np.gradient(sections, axis=0)
        around = np.gradient(sections, axis=1)
        normals = np.cross(along, around)
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True) + 1e-9
        count = sections.shape[1]
        for s in range(len(sections) - 1):
            for k in range(count - 1):
                n = k + 1
                tint = colour(s, k) if callable(colour) else colour
                for corners in (((s, k), (s + 1, k), (s + 1, n)), ((s, k), (s + 1, n), (s, n))):
                    self.triangle(np.array([sections[c] for c in corners]), tint, gloss,
                                  np.array([normals[c] for c in corners]))

    def disc(self, centre, radius, normal, colour, gloss=0.0, sides=28):
        normal = unit(normal)
        u = unit(np.cross(normal, [0.0, 1.0, 0.001]))
        v = np.cross(normal, u)
        angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
        self.polygon([np.asarray(centre) + radius * (np.cos(a) * u + np.sin(a) * v) for a in angles], colour,
                     gloss)

    def wheel(self, centre, radius, width, hub=(0.72, 0.73, 0.75)):
        """A tyre standing along x, seen from either side."""
        x, y, z = centre
        angles = np.linspace(0, 2 * np.pi, 25)
        rim = [[(x + radius * np.cos(a), y + radius * np.sin(a), z + side * width / 2)
                for a in angles]
               for side in (-1, 1)]
        self.loft(rim, (0.06, 0.06, 0.065))
        for side in (-1, 1):
            face = z + side * width / 2
            self.disc((x, y, face), radius, (0, 0, 1), (0.07, 0.07, 0.075))
            self.disc((x, y, face + side * 0.006), 0.62 * radius, (0, 0, 1), hub, 0.4)
            self.disc((x, y, face + side * 0.010), 0.2 * radius, (0, 0, 1), (0.25, 0.25, 0.27))

    def covered(self):
        return np.isfinite(self.depth)

    def shadow(self, sun):
        """Where the visible surface keeps the sun from the ground: (H, W) in 0..1, not yet softened."""
        height, width = self.shape
        ys, xs = np.nonzero(self.covered())
        z = self.depth[ys, xs].astype(np.float64)
        scale = self.camera.focal / (self.camera.distance - z)
        view = np.stack(
            [(xs + 0.5 - self.camera.centre[0]) / scale, -(ys + 0.5 - self.camera.centre[1]) / scale, z], -1)
        world = self.camera.to_world(view)
        ground = world - sun * (world[:, 1:2] / sun[1])
        pixels, _ = self.camera.to_pixels(self.camera.to_view(ground))
        mask = np.zeros(self.shape, dtype=np.float32)
        columns, rows = pixels[:, 0].astype(int), pixels[:, 1].astype(int)
        seen = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
        mask[rows[seen], columns[seen]] = 1
        return mask

    def shade(self,
              background,
              sun,
              grain,
              fur_noise,
              sky=(0.50, 0.56, 0.66),
              bounce=(0.26, 0.24, 0.20),
              sunlight=(0.92, 0.86, 0.76)):
        """Lights the surface and lays it over the background; `grain` and `fur_noise` are (H, W) noises
        around zero."""
        light = self.camera.rotation @ sun
        up = self.camera.rotation @ np.array([0.0, 1.0, 0.0])
        normal = self.normal.copy()
        slope = np.stack(np.gradient(fur_noise)[::-1], -1)
        normal[..., 0] -= self.fur * slope[..., 0] * 1.2
        normal[..., 1] += self.fur * slope[..., 1] * 1.2
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-9
        upward = 0.5 + 0.5 * normal @ up
        ambient = upward[..., None] * np.array(sky) + (1 - upward[..., None]) * np.array(bounce)
        direct = np.clip((normal @ light + 0.15) / 1.15, 0, 1)[..., None] * np.array(sunlight)
        tint = self.albedo * (1 + ((0.05 - 0.03 *
                                    (self.gloss > 0.2)) * grain + self.fur * 0.30 * fur_noise)[..., None])
        halfway = unit(light + np.array([0, 0, 1.0]))
        shine = self.gloss[..., None] * (np.clip(normal @ halfway, 0, 1)[..., None]**40 * 0.9 +
                                         0.18 * upward[..., None]**3)
        colour = np.clip(tint, 0, 1) * (ambient + direct) + shine
        return np.where(self.covered()[..., None], colour, background)
