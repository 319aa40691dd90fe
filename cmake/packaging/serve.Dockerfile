# vit serve in a container, from the image that Dockerfile makes:
#   docker build -f cmake/packaging/Dockerfile -t vit .
#   docker build -f cmake/packaging/serve.Dockerfile -t vit-serve .
#   docker run --rm -p 127.0.0.1:3003:3003 -v /srv/models:/models:ro -e VIT_API_KEY vit-serve --model clip=/models/clip
# In a compose file of immich it takes the place and the name of immich-machine-learning. Docker's own filter of system
# calls lets Landlock through since release 23; where it does not, vit serve says so, and --no-sandbox goes without.
# This file was written where no container runtime was at hand, and has not been built.
FROM vit
RUN useradd --system --no-create-home vit
USER vit
EXPOSE 3003
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --start-period=120s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/3003 && printf 'GET /health HTTP/1.0\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]"]
ENTRYPOINT ["vit", "serve", "--host", "0.0.0.0"]
