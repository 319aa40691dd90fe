"""Who is where, and how: boxes of a detector, keypoints in them.  people.py DETECTOR POSE_MODEL IMAGE..."""

import sys

import vitcpp


def main() -> None:
    detector, poses = vitcpp.load(sys.argv[1]), vitcpp.load(sys.argv[2])
    for image in sys.argv[3:]:
        people = [found for found in detector.detect(image) if found["label"] == "person"]
        for pose in poses.pose(image, people):
            best = int(pose["scores"].argmax())
            x, y = pose["keypoints"][best]
            print(f"{image}: {pose['labels'][best]} at {x:.1f}, {y:.1f} ({pose['scores'][best]:.2f})")


if __name__ == "__main__":
    main()
